package hdfs_test

import (
	"context"
	"hash/crc32"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta/stall"
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
			order.Records, order.Size, order.Seed, order.BlockSize = 3000, 200, 3, 20_000
			content, written, err := p.Sequence(t.TempDir(), order)
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
			clock := stall.NewTable(time.Now).Clock(stall.Overhead)
			wait := clock.Wait(time.Now())
			ctx := stall.With(t.Context(), clock)
			sum := uint32(0)
			for i := range d.Chunks() {
				whole := readChunk(ctx, t, d, i)
				sum = crc32.Update(sum, crc32.IEEETable, whole)
				someValues(ctx, t, d, i, whole)
			}
			if sum != written.CRC32 {
				t.Errorf("the values are others: checksum %08x, want %08x", sum, written.CRC32)
			}
			if w := wait.ByCause(); w[stall.Source] == 0 || w[stall.Decode] == 0 {
				t.Errorf("read for %v, want some of source and some of decode", w)
			}
		})
	}
}

func readChunk(ctx context.Context, t *testing.T, d sourcetest.Dataset, i int) []byte {
	t.Helper()
	c := d.Chunk(i)
	return readExtents(ctx, t, d, d.Extents(c.First, c.Records))
}

// someValues reads the first and the last value of a chunk alone.
func someValues(ctx context.Context, t *testing.T, d sourcetest.Dataset, i int, whole []byte) {
	t.Helper()
	c := d.Chunk(i)
	last := d.Extent(c.First + c.Records - 1)
	got := readExtents(ctx, t, d, []index.Extent{last, d.Extent(c.First)})
	want := append(append([]byte{}, whole[len(whole)-int(last.Len):]...), whole[:d.Size(c.First)]...)
	if string(got) != string(want) {
		t.Errorf("chunk %d: its last and first values are others than within it", i)
	}
}

func readExtents(ctx context.Context, t *testing.T, d sourcetest.Dataset, extents []index.Extent) []byte {
	t.Helper()
	size := int64(0)
	for _, e := range extents {
		size += e.Len
	}
	dst := make([]byte, size)
	if err := d.Read(ctx, extents, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}
