package hdfs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rankfs/fetch/hdfs"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/sourcetest"
)

// More replicas, and others, are found, for files that are asked for singly and
// for those of a listing; hosts of chunks that stay are not forgotten.
func TestReplicasMove(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	sets := placed(t, c, dir)
	for _, file := range files(dir) {
		if err := c.SetReplication(t.Context(), file, 3); err != nil {
			t.Fatal(err)
		}
	}
	sets.until(t, "data1", "data2", "data3")
}

// A datanode dies: chunks are held by the hosts that are left, or by none; when it is back it
// holds them again.
func TestHoldersDie(t *testing.T) {
	c := cluster.Exclusive(t)
	dir := c.Dir(t)
	sets := placed(t, c, dir)
	if err := c.Host("data2").Kill(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	sets.until(t)
	if err := c.Host("data2").Start(cluster.DataNode); err != nil {
		t.Fatal(err)
	}
	sets.until(t, "data2")
}

type sets map[string]sourcetest.Dataset

// placed makes datasets that are on data2 alone, of files that are asked for
// singly and of those of a listing. Where they are is asked for all the time.
func placed(t *testing.T, c *cluster.Cluster, dir string) sets {
	t.Helper()
	content, _ := text(100)
	all := files(dir)
	for _, name := range all[1:] {
		c.Host("data2").Put(t, name, content[:1000], 1, block)
	}
	c.Host("data2").Put(t, all[0], content, 1, block)
	often := func(k *hdfs.Config) { k.Review = 100 * time.Millisecond }
	s := sets{
		"lines":    dataset(t, c, dir+"/f?as=lines", often),
		"listing":  dataset(t, c, dir+"/d?as=lines", often),
		"together": dataset(t, c, dir+"/d", often),
	}
	for name, d := range s {
		if !at(d, "data2") {
			t.Fatalf("%s: a chunk is on %v", name, d.Hosts(0))
		}
	}
	return s
}

// files are those of placed: one, and some of a directory, which a namenode lists in
// another order than that of an index.
func files(dir string) []string {
	all := []string{dir + "/f", dir + "/d/0é"}
	for i := range 12 {
		all = append(all, fmt.Sprintf("%s/d/%02d", dir, i))
	}
	return all
}

// at reports whether all chunks are on those hosts alone.
func at(d sourcetest.Dataset, hosts ...string) bool {
	for i := range d.Chunks() {
		if !slices.Equal(d.Hosts(i), hosts) {
			return false
		}
	}
	return true
}

// until waits until all chunks are on those hosts alone. No file has changed.
func (s sets) until(t *testing.T, hosts ...string) {
	t.Helper()
	for name, d := range s {
		eventually.True(t, fmt.Sprintf("all chunks of %s are on %v", name, hosts), func() bool { return at(d, hosts...) })
		if err := d.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
