package hdfs_test

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/test/cluster"
	"rankfs/test/hadoop"
	"rankfs/test/sourcetest"
)

// What Hadoop writes comes back, value by value, from files of several blocks:
// whole chunks, and some values of one.
func TestSequence(t *testing.T) {
	c := cluster.Shared(t)
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, order := range []hadoop.SequenceOrder{
		{Compression: "NONE", Value: "Text"},
		{Compression: "RECORD", Codec: "DefaultCodec", Value: "BytesWritable"},
		{Compression: "BLOCK", Codec: "SnappyCodec", Value: "BytesWritable"},
		{Compression: "BLOCK", Codec: "GzipCodec", Value: "LongWritable"},
	} {
		t.Run(order.Compression+order.Codec+order.Value, func(t *testing.T) {
			local := filepath.Join(t.TempDir(), "file")
			order.Path, order.Records, order.Size, order.Seed, order.BlockSize = "file://"+local, 3000, 200, 3, 20_000
			var written hadoop.SequenceAnswer
			if err := p.Ask(order, &written); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(local)
			if err != nil {
				t.Fatal(err)
			}
			dir := c.Dir(t)
			const small = 8 << 10
			c.Host("data1").Put(t, dir+"/f", content, 2, small)
			d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
				return fetch.Open("hdfs://rankfs"+dir+"/f?as=sequence", &fetch.Env{HDFS: clusters(t, c, nil)})
			}})
			if d.Records() != uint64(written.Records) || d.Bytes() != written.ValueBytes {
				t.Fatalf("%d values of %d bytes, want %+v", d.Records(), d.Bytes(), written)
			}
			if blocks := len(content) / small; d.Chunks() < 2 && blocks > 20 {
				t.Errorf("%d chunks of %d blocks", d.Chunks(), blocks)
			}
			sum := uint32(0)
			for i := range d.Chunks() {
				whole := readChunk(t, d, i)
				sum = crc32.Update(sum, crc32.IEEETable, whole)
				someValues(t, d, i, whole)
			}
			if sum != written.CRC32 {
				t.Errorf("the values are others: checksum %08x, want %08x", sum, written.CRC32)
			}
		})
	}
}

func readChunk(t *testing.T, d *fetch.Dataset, i int) []byte {
	t.Helper()
	c := d.Chunk(i)
	return readExtents(t, d, d.AppendExtents(nil, c.First, c.Records))
}

// someValues reads the first and the last value of a chunk alone.
func someValues(t *testing.T, d *fetch.Dataset, i int, whole []byte) {
	t.Helper()
	c := d.Chunk(i)
	last := d.Extent(c.First + c.Records - 1)
	got := readExtents(t, d, []index.Extent{last, d.Extent(c.First)})
	want := append(append([]byte{}, whole[len(whole)-int(last.Len):]...), whole[:d.Size(c.First)]...)
	if string(got) != string(want) {
		t.Errorf("chunk %d: its last and first values are others than within it", i)
	}
}

func readExtents(t *testing.T, d *fetch.Dataset, extents []index.Extent) []byte {
	t.Helper()
	size := int64(0)
	for _, e := range extents {
		size += e.Len
	}
	dst := make([]byte, size)
	if err := d.Read(t.Context(), extents, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}
