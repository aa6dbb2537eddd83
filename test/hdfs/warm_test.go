package hdfs_test

import (
	"slices"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// A view whose batches are made of chunks is warmed up, pinned and evicted by
// these: afterwards all its epochs are read without HDFS, or with it again.
func TestWarm(t *testing.T) {
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := lines(5000)
	c.Host("data2").Put(t, path, []byte(content), 2, block)
	d := newPlace(t, c, "data1").start()
	d.create("train", path, "--batch", "256", "--order", "full")
	if out := d.Do("cache", "pin", "train"); !strings.Contains(out, "made of chunks, so these are pinned, for all views of train") {
		t.Errorf("pin says %s", out)
	}
	if out := d.Do("warm", "train"); !strings.Contains(out, " chunks ready") {
		t.Errorf("warm says %s", out)
	}
	if out := d.Do("cache", "ls"); !strings.Contains(out, "train  chunks") || !strings.Contains(out, "  ram\n") {
		t.Errorf("what is there:\n%s", out)
	}
	before := d.status().HDFS.Bytes
	for _, view := range []string{"train", "train@epoch=1", "train@batch=100,order=window:500"} {
		if got, err := d.read(view); err != nil || !slices.Equal(sorted(got), sorted(content)) {
			t.Errorf("%s has other lines than the file, or %v", view, err)
		}
	}
	if after := d.status().HDFS.Bytes; after != before {
		t.Errorf("%d bytes came from HDFS though all was warm", after-before)
	}
	d.Do("cache", "evict", "train")
	if _, err := d.read("train"); err != nil {
		t.Error(err)
	}
	if after := d.status().HDFS.Bytes; after < before+uint64(len(content)) {
		t.Errorf("%d bytes came from HDFS after it was evicted", after-before)
	}
}
