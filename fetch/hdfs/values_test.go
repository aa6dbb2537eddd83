package hdfs_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math/rand/v2"
)

// manyValues are some empty, some long, and of some hundred KiB together, so that
// their file has several blocks.
func manyValues() (values [][]byte) {
	r := rand.New(rand.NewPCG(11, 0))
	for i := range 600 {
		value := make([]byte, r.IntN(800))
		switch i % 100 {
		case 7:
			value = nil
		case 50:
			value = make([]byte, 10_000)
		}
		for j := range value {
			value[j] = byte(r.Uint32())
		}
		values = append(values, value)
	}
	return values
}

// sequenceOf is a SequenceFile with those values, as BytesWritable, each with an
// empty key, and a mark between them every few KiB.
func sequenceOf(values [][]byte, compressed bool) []byte {
	var b bytes.Buffer
	text := func(s string) { b.WriteByte(byte(len(s))); b.WriteString(s) }
	number := func(n int) { binary.Write(&b, binary.BigEndian, int32(n)) }
	b.WriteString("SEQ\x06")
	text("org.apache.hadoop.io.NullWritable")
	text("org.apache.hadoop.io.BytesWritable")
	b.Write([]byte{map[bool]byte{true: 1}[compressed], 0}) // by record, not by block
	if compressed {
		text("org.apache.hadoop.io.compress.DefaultCodec")
	}
	number(0) // metadata
	sync := []byte("0123456789abcdef")
	b.Write(sync)
	marked := b.Len()
	for _, value := range values {
		if b.Len() > marked+2000 {
			number(-1)
			b.Write(sync)
			marked = b.Len()
		}
		written := append(binary.BigEndian.AppendUint32(nil, uint32(len(value))), value...)
		if compressed {
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			w.Write(written)
			w.Close()
			written = z.Bytes()
		}
		number(len(written))
		number(0) // of the key
		b.Write(written)
	}
	return b.Bytes()
}
