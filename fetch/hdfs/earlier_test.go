package hdfs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/test/cluster"
	"rankfs/test/hadoop"
)

// A scan that has the index of an earlier version reads the files that are new or were
// written anew, and makes the same index as one that reads all.
func TestScanReadsWhatChanged(t *testing.T) {
	c := cluster.Shared(t)
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	values := func(seed int64) []byte {
		content, _, err := p.Sequence(t.TempDir(), hadoop.SequenceOrder{
			Compression: "BLOCK", Codec: "SnappyCodec", Value: "BytesWritable",
			Records: 4000, Size: 200, Seed: seed, BlockSize: 20_000,
		})
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	long, _ := text(1000)
	short, _ := text(300)
	for as, content := range map[string][2][]byte{"lines": {long, short}, "sequence": {values(1), values(2)}} {
		t.Run(as, func(t *testing.T) {
			dir := c.Dir(t)
			put := func(name string, content []byte) { c.Host("data1").Put(t, dir+"/"+name, content, 2, block) }
			for _, name := range []string{"a", "b", "c", "e"} {
				put(name, content[0])
			}
			_, before, _ := scanned(t, c, dir+"?as="+as, nil)
			client := dial(t, c.Host("data1"))
			if err := errors.Join(client.Remove(dir+"/a"), client.Remove(dir+"/c")); err != nil {
				t.Fatal(err)
			}
			put("c", content[1])
			put("d", content[1])
			all, _, want := scanned(t, c, dir+"?as="+as, nil)
			some, got, merged := scanned(t, c, dir+"?as="+as, before)
			if !bytes.Equal(merged, want) {
				t.Error("the index is not that of a scan of all files")
			}
			few, many := uint64(2*len(content[1])), uint64(2*len(content[0])+2*len(content[1]))
			if share := float64(few) / float64(many); share > 0.6 || some < few || float64(some) > 1.1*share*float64(all) {
				t.Errorf("read %d bytes, %d without an earlier index; %d of %d changed", some, all, few, many)
			}
			if _, again, _ := scanned(t, c, dir+"?as=lines", got); as != "lines" && again.Records() == got.Records() {
				t.Error("the index of another form is used")
			}
		})
	}
}

// scanned is how many bytes were read for the index of a source, which is open and as
// it is on the disk.
func scanned(t *testing.T, c *cluster.Cluster, path string, earlier *index.Index) (read uint64, x *index.Index, text []byte) {
	t.Helper()
	k := clusters(t, c, nil)
	src, err := fetch.Open("hdfs://rankfs"+path, &fetch.Env{HDFS: k})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if earlier != nil {
		src.(*hdfs.Source).Reuse(earlier)
	}
	file := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, file, nil); err != nil {
		t.Fatal(err)
	}
	if x, err = index.Open(file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	if text, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return k.Stats().Bytes, x, text
}
