package hdfs_test

import (
	"testing"

	"rankfs/test/cluster"
)

// A refresh reads what came to a dataset, and not again what it had.
func TestRefreshReadsWhatIsNew(t *testing.T) {
	c := cluster.Mounts(t)
	dir := c.Dir(t)
	old, added := lines(8000), lines(500)
	c.Host("data2").Put(t, dir+"/b", []byte(old), 2, block)
	d := newPlace(t, c, "data1").start()
	d.create("train", dir+"?as=lines")
	before := d.status().HDFS.Bytes
	c.Host("data2").Put(t, dir+"/a", []byte(added), 2, block)
	d.Do("dataset", "refresh", "train")
	if read := d.status().HDFS.Bytes - before; read < uint64(len(added)) || read > uint64(2*len(added)) {
		t.Errorf("read %d bytes for %d new ones beside %d", read, len(added), len(old))
	}
	if got, err := d.read("train"); err != nil || got != added+old {
		t.Errorf("other bytes after a refresh, or %v", err)
	}
}
