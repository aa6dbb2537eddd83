package hdfs_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/test/cluster"
)

// What a namenode says of racks is taken as far as it says something, and never
// keeps a dataset from being indexed.
func TestRacks(t *testing.T) {
	in := func(pairs ...string) (b namenode.Block) {
		for i := 0; i < len(pairs); i += 2 {
			b.Replicas = append(b.Replicas, namenode.Replica{Host: pairs[i], Rack: pairs[i+1]})
		}
		return b
	}
	got := hdfs.Racks(
		in("a", "/r1", "b", "/r2"), in("a", "/r1", "c", "/default-rack"), in("d", "", "", "/r1"),
		in("e", "/r9", "f", "/r\x001", "g\x00", "/r1"), in("e", "/r10"), in("e", "/r11"),
		in("h", strings.Repeat("r", 1025), strings.Repeat("h", 1025), "/r1"),
	)
	if want := (map[string]string{"a": "/r1", "b": "/r2", "e": "/r10"}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var many []namenode.Block
	for i := range 1<<16 + 10 {
		many = append(many, in(strings.Repeat("h", i%1000)+string(rune('0'+i/1000)), "/r1"))
	}
	if got := hdfs.Racks(many...); len(got) != 1<<16 {
		t.Errorf("%d hosts", len(got))
	}
	b, err := index.Create(filepath.Join(t.TempDir(), "index"))
	if err != nil {
		t.Fatal(err)
	}
	for host, rack := range got {
		b.Rack(host, rack)
	}
	if err := b.Commit("v"); err != nil {
		t.Error(err)
	}
}

// Where the namenode was not told of racks, the index has none.
func TestDefaultRack(t *testing.T) {
	c := cluster.Shared(t)
	dir := c.Dir(t)
	c.Host("data1").Put(t, dir+"/f", make([]byte, 1000), 2, block)
	src, err := fetch.Open("hdfs://"+c.Nameservice()+dir, &fetch.Env{HDFS: clusters(t, c, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if len(x.Chunk(0).Hosts) == 0 || x.Racks() != nil {
		t.Errorf("hosts %v, racks %v", x.Chunk(0).Hosts, x.Racks())
	}
}
