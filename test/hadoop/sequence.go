package hadoop

import (
	"encoding/binary"
	"os"
)

// SequenceOrder is an order to Sequence, which documents it.
type SequenceOrder struct {
	Path         string            `json:"path"`
	Compression  string            `json:"compression,omitempty"` // NONE, RECORD or BLOCK
	Codec        string            `json:"codec,omitempty"`       // a class of org.apache.hadoop.io.compress, or Own
	Key          string            `json:"key,omitempty"`         // a class of org.apache.hadoop.io, as Value
	Value        string            `json:"value,omitempty"`
	Records      int               `json:"records"`
	Size         int               `json:"size"`                   // bytes of a value, on the mean
	SyncInterval int               `json:"syncInterval,omitempty"` // bytes between markers, of NONE and RECORD
	BlockSize    int               `json:"blockSize,omitempty"`    // of BLOCK, before compression
	Seed         int64             `json:"seed"`
	Settings     map[string]string `json:"settings,omitempty"`
}

// SequenceAnswer describes the file that Sequence wrote.
type SequenceAnswer struct {
	Bytes      int64 // of the file
	Records    int
	ValueBytes int64
	CRC32      uint32 // IEEE, of all values one after the other
}

// Sequence has Sequence write a file below dir, and returns what it has.
func (p *Program) Sequence(dir string, order SequenceOrder) ([]byte, SequenceAnswer, error) {
	f, err := os.CreateTemp(dir, "sequence")
	if err != nil {
		return nil, SequenceAnswer{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	order.Path = "file://" + f.Name()
	var written SequenceAnswer
	if err := p.Ask(order, &written); err != nil {
		return nil, written, err
	}
	content, err := os.ReadFile(f.Name())
	return content, written, err
}

// Values makes the values of the file again, by what Sequence.java says of them.
func (o SequenceOrder) Values() [][]byte {
	values := make([][]byte, o.Records)
	for i := range values {
		values[i] = o.record(i)
	}
	return values
}

func (o SequenceOrder) record(i int) []byte {
	state := uint64(o.Seed) + uint64(i)<<32
	next := func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	first := next()
	switch o.Value {
	case "LongWritable":
		return binary.BigEndian.AppendUint64(nil, first)
	case "NullWritable":
		return nil
	}
	v := make([]byte, first%uint64(2*o.Size+1))
	var letters uint64
	for j := range v {
		if letters >>= 4; j%16 == 0 {
			letters = next()
		}
		v[j] = 'a' + byte(letters&15)
	}
	return v
}
