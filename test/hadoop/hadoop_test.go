package hadoop_test

import (
	"hash/crc32"
	"testing"

	"rankfs/test/hadoop"
)

func TestSequence(t *testing.T) {
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	codecs := []string{"DefaultCodec", "DeflateCodec", "GzipCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec", "ZStandardCodec", "Own"}
	orders := []hadoop.SequenceOrder{{Compression: "NONE"}}
	for _, codec := range codecs {
		orders = append(orders,
			hadoop.SequenceOrder{Compression: "RECORD", Codec: codec},
			hadoop.SequenceOrder{Compression: "BLOCK", Codec: codec})
	}
	for _, order := range orders {
		for _, kind := range []string{"BytesWritable", "Text", "LongWritable", "NullWritable"} {
			t.Run(order.Compression+order.Codec+kind, func(t *testing.T) {
				order := order
				order.Value, order.Records, order.Size, order.Seed = kind, 100, 50, 7
				check(t, p, order)
			})
		}
	}
}

func check(t *testing.T, p *hadoop.Program, order hadoop.SequenceOrder) {
	content, got, err := p.Sequence(t.TempDir(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := hadoop.SequenceAnswer{Bytes: int64(len(content)), Records: order.Records}
	for _, v := range order.Values() {
		want.ValueBytes += int64(len(v))
		want.CRC32 = crc32.Update(want.CRC32, crc32.IEEETable, v)
	}
	if got != want {
		t.Errorf("wrote %+v, want %+v", got, want)
	}
}
