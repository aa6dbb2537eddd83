package hdfs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rankfs/fetch"
	"rankfs/test/cluster"
)

// More replicas, and others, are found, for files that are asked for singly and
// for those of a listing; hosts of chunks that stay are not forgotten.
func TestReplicasMove(t *testing.T) {
	c := cluster.Exclusive(t)
	dir := c.Dir(t)
	content, _ := text(100)
	for i := range 12 {
		c.Host("data2").Put(t, fmt.Sprintf("%s/d/%02d", dir, i), content[:1000], 1, block)
	}
	c.Host("data2").Put(t, dir+"/f", content, 1, block)
	sets := map[string]*fetch.Dataset{
		"lines":    dataset(t, c, dir+"/f?as=lines", nil),
		"listing":  dataset(t, c, dir+"/d?as=lines", nil),
		"together": dataset(t, c, dir+"/d", nil),
	}
	at := func(d *fetch.Dataset, hosts ...string) bool {
		for i := range d.Chunks() {
			if !slices.Equal(d.Hosts(i), hosts) {
				return false
			}
		}
		return true
	}
	for name, d := range sets {
		if !at(d, "data2") {
			t.Fatalf("%s: a chunk is on %v", name, d.Hosts(0))
		}
	}
	out, err := c.Host("client").Java(t.Context(), "org.apache.hadoop.fs.FsShell", "-setrep", "-R", "3", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, d := range sets {
		for end := time.Now().Add(100 * time.Second); !at(d, "data1", "data2", "data3"); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: a chunk is on %v", name, d.Hosts(0))
			}
		}
		if err := d.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
