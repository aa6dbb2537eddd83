package nodes_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// A stage whose maps are on two nodes is a dataset on each, with the records of a plain
// sort, also on one that is mounted without a pool, where it was made.
func TestAStageIsADatasetOnAllNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := gather(t, c, c.Hosts()[:3])
	nodes := m.Nodes
	for _, n := range nodes[:2] {
		n.Options("--pool-ram", "64MiB")
	}
	m.Found()
	inJob(nodes[0], `mkdir -p "$1/s"; echo 'maps=4 parts=3 copies=1 record=line by=range' > "$1/s/spec"`)
	texts := make([]string, 4)
	for i := range texts {
		var b strings.Builder
		for k := range 2000 {
			fmt.Fprintf(&b, "%08x of map %d\n", uint32(k*4+i)*2654435761, i)
		}
		texts[i] = b.String()
		inJob(nodes[i%2], `printf '%s' "$2" > "$1/s/.map-00000$3.0"; mv "$1/s/.map-00000$3.0" "$1/s/map-00000$3"`, texts[i], fmt.Sprint(i))
	}
	nodes[2].Do("dataset", "create", "d", "--source", "shuffle:job/s", "--ranks", "2", "--batch", "500")
	m.Await("d")
	want := nodes[0].Must("sh", "-c", `printf '%s' "$@" | LC_ALL=C sort | sha256sum`, "sh", texts[0], texts[1], texts[2], texts[3])
	var first map[string]string
	for _, n := range nodes {
		got := n.Must("sh", "-c", `cat "$0"/rank-0/batch-*[0-9] | sha256sum`, n.Mount()+"/datasets/d@ranks=1")
		if got != want {
			t.Errorf("on %s records have the sum %s, want %s", n.Host.Name, got, want)
		}
		all, err := daemon.Sums(n, "d@order=full,seed=3")
		if err != nil || len(all) != 16 || first != nil && !maps.Equal(all, first) {
			t.Errorf("on %s %d batches are not those of the first node, or not 16: %v", n.Host.Name, len(all), err)
		}
		first = all
	}
	if out, err := nodes[1].Tool("rm", "-r", nodes[1].Mount()+"/shuffle/job"); err == nil {
		t.Errorf("on another node than the dataset was made on the job was removed: %s", out)
	}
	nodes[1].Do("dataset", "rm", "d")
	endJob(t, nodes)
}
