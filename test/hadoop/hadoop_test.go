package hadoop_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"rankfs/test/hadoop"
)

// value makes a record's value again, by what Sequence.java says of it.
func value(order hadoop.SequenceOrder, i int) []byte {
	state := uint64(order.Seed) + uint64(i)<<32
	next := func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	first := next()
	if order.Value == "LongWritable" {
		return binary.BigEndian.AppendUint64(nil, first)
	}
	v := make([]byte, first%uint64(2*order.Size+1))
	var letters uint64
	for j := range v {
		if letters >>= 4; j%16 == 0 {
			letters = next()
		}
		v[j] = 'a' + byte(letters&15)
	}
	return v
}

func TestSequence(t *testing.T) {
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	codecs := []string{"DefaultCodec", "GzipCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec"}
	orders := []hadoop.SequenceOrder{{Compression: "NONE"}}
	for _, codec := range codecs {
		orders = append(orders,
			hadoop.SequenceOrder{Compression: "RECORD", Codec: codec},
			hadoop.SequenceOrder{Compression: "BLOCK", Codec: codec})
	}
	for _, order := range orders {
		for _, kind := range []string{"BytesWritable", "Text", "LongWritable"} {
			t.Run(order.Compression+order.Codec+kind, func(t *testing.T) {
				order := order
				order.Path = filepath.Join(t.TempDir(), "file.seq")
				order.Value, order.Records, order.Size, order.Seed = kind, 100, 50, 7
				check(t, p, order)
			})
		}
	}
}

func check(t *testing.T, p *hadoop.Program, order hadoop.SequenceOrder) {
	local := order.Path
	order.Path = "file://" + local
	var got hadoop.SequenceAnswer
	if err := p.Ask(order, &got); err != nil {
		t.Fatal(err)
	}
	want := hadoop.SequenceAnswer{Records: order.Records}
	for i := range order.Records {
		v := value(order, i)
		want.ValueBytes += int64(len(v))
		want.CRC32 = crc32.Update(want.CRC32, crc32.IEEETable, v)
	}
	info, err := os.Stat(local)
	if err != nil {
		t.Fatal(err)
	}
	want.Bytes = info.Size()
	if got != want {
		t.Errorf("wrote %+v, want %+v", got, want)
	}
}
