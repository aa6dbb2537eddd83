package hdfs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
	"rankfs/test/sourcetest"
)

// SequenceFiles of every compression, by every codec, with keys and values of
// several classes, are a source like any other. By record the codecs differ in
// how they decode alone, so that one is enough of each kind: zlib, and frames.
func TestSequencesConform(t *testing.T) {
	c := cluster.Shared(t)
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	kinds := []hadoop.SequenceOrder{{Compression: "NONE"}, {Compression: "RECORD", Codec: "DefaultCodec"}, {Compression: "RECORD", Codec: "Lz4Codec"}}
	for _, codec := range []string{"DefaultCodec", "DeflateCodec", "GzipCodec", "BZip2Codec", "SnappyCodec", "Lz4Codec", "ZStandardCodec"} {
		kinds = append(kinds, hadoop.SequenceOrder{Compression: "BLOCK", Codec: codec})
	}
	for _, kind := range kinds {
		t.Run(kind.Compression+kind.Codec, func(t *testing.T) { written(t, p, kind).run(t, c) })
	}
}

// written is a directory of files of a kind, one for each class of values and one
// without any; the large ones have several blocks.
func written(t *testing.T, p *hadoop.Program, kind hadoop.SequenceOrder) conformance {
	t.Helper()
	f := conformance{options: "d?as=sequence", block: 8 << 10, files: make(map[string][]byte)}
	for _, file := range []struct {
		name, key, value string
		records          int
	}{
		{"d/a", "Text", "BytesWritable", 12},
		{"d/b", "LongWritable", "Text", 12},
		{"d/c", "NullWritable", "LongWritable", 12},
		{"d/d", "LongWritable", "NullWritable", 6},
		{"d/e", "Text", "Text", 0},
	} {
		order := kind
		order.Key, order.Value, order.Records = file.key, file.value, file.records
		order.Size, order.SyncInterval, order.BlockSize, order.Seed = 1600, 1000, 5000, int64(len(f.records))
		content, _, err := p.Sequence(t.TempDir(), order)
		if err != nil {
			t.Fatal(err)
		}
		f.files[file.name] = content
		f.records = append(f.records, order.Values()...)
	}
	if n := int64(len(f.files["d/a"])); n <= f.block {
		t.Fatalf("a file of %d bytes has one block", n)
	}
	return f
}

// Of values in any order each split of a file is read once for all of them, and where its
// blocks are is remembered.
func TestShuffledValues(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	values := manyValues()
	content := sequenceOf(values, true)
	c.Host("data1").Put(t, dir+"/f", content, 2, block)
	k := clusters(t, c, nil)
	located, err := k.CountLocates("rankfs")
	if err != nil {
		t.Fatal(err)
	}
	d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
		return fetch.Open("hdfs://rankfs"+dir+"/f?as=sequence", &fetch.Env{HDFS: k})
	}})
	if d.Chunks() < 3 {
		t.Fatalf("%d chunks, want some", d.Chunks())
	}
	var extents []index.Extent
	var want []byte
	for _, i := range rand.New(rand.NewPCG(5, 0)).Perm(len(values)) {
		extents = append(extents, d.Extent(uint64(i)))
		want = append(want, values[i]...)
	}
	before := k.Stats().Bytes
	if got := readExtents(t.Context(), t, d, extents); !bytes.Equal(got, want) {
		t.Error("values in another order have other bytes")
	}
	// Beside the splits a datanode sends some packets of the header for each.
	if n := k.Stats().Bytes - before; n < uint64(len(content)) || n > 4*uint64(len(content)) {
		t.Errorf("%d bytes were read of a file of %d", n, len(content))
	}
	// Places are believed for a second, which a slow machine may take to read.
	eventually.True(t, "the namenode is not asked again for places that it has just told", func() bool {
		readExtents(t.Context(), t, d, extents[:1])
		located.Store(0)
		readExtents(t.Context(), t, d, extents[:1])
		return located.Load() == 0
	})
}

// What is not read of a SequenceFile is refused when it is registered, and what to
// write instead is said.
func TestSequencesRefused(t *testing.T) {
	c := cluster.Shared(t)
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir := c.Dir(t)
	large := func(codec, setting string) hadoop.SequenceOrder { // the first of two values has 6.6 MiB
		return hadoop.SequenceOrder{Codec: codec, Value: "BytesWritable", Records: 2, Size: 7 << 19, Seed: 1, BlockSize: 64 << 20,
			Settings: map[string]string{setting: "8388608"}}
	}
	const (
		snappy = "io.compression.codec.snappy.buffersize"
		lz4    = "io.compression.codec.lz4.buffersize"
		buffer = "write the file with a smaller buffer of the codec"
	)
	strong := hadoop.SequenceOrder{Codec: "ZStandardCodec", Value: "BytesWritable", Records: 10, Size: 100, BlockSize: 64 << 20,
		Settings: map[string]string{"io.compression.codec.zstd.level": "20"}}
	for _, test := range []struct {
		name, words string
		order       hadoop.SequenceOrder
	}{
		{"an unknown codec", `codec "Sequence$Own" is not one that can be read: write the file with one of BZip2Codec, ` +
			`DefaultCodec, DeflateCodec, GzipCodec, Lz4Codec, SnappyCodec, ZStandardCodec`, hadoop.SequenceOrder{Codec: "Own", Value: "Text", Records: 10, Size: 100}},
		{"Snappy of a large buffer", buffer, large("SnappyCodec", snappy)},
		{"LZ4 of a large buffer", buffer, large("Lz4Codec", lz4)},
		{"Zstandard of a large window", "write the file with level 19 or less", strong},
	} {
		for _, compression := range []string{"RECORD", "BLOCK"} {
			t.Run(test.name+" by "+compression, func(t *testing.T) {
				order := test.order
				order.Compression = compression
				content, _, err := p.Sequence(t.TempDir(), order)
				if err != nil {
					t.Fatal(err)
				}
				path := dir + "/" + compression + order.Codec
				c.Host("data1").Put(t, path, content, 2, 1<<20)
				refused(t, t.Context(), clusters(t, c, nil), "hdfs://rankfs"+path+"?as=sequence", meta.ErrInvalid, test.words)
			})
		}
	}
}
