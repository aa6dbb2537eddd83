package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// A copy that goes to another node, and a part that a third one takes, are the same bytes with
// compress= in the spec, and less of them are on the network.
func TestPackedBetweenNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	nodes := newTeam(t, c, c.Hosts()[:3], "--pool-ram", "64MiB").Nodes
	defer func() { endJob(t, nodes) }()
	const size = 16 << 20
	received := func() (sum int64) {
		for _, n := range nodes {
			_, rest, _ := strings.Cut(n.Must("cat", "/proc/net/dev"), "eth0:")
			var bytes int64
			if _, err := fmt.Sscan(rest, &bytes); err != nil {
				t.Fatal(err)
			}
			sum += bytes
		}
		return sum
	}
	plain := int64(0)
	for _, by := range []string{"none", "lz4", "zstd"} {
		before := received()
		nodes[0].Do("shuffle", "create", "job/"+by, "maps=1", "copies=2", "compress="+by)
		want := inJob(nodes[0], `seq -f 'line %.0f of this map' 1000000 9999999 | head -c $3 > "$1/$2/.map-000000.0"
sha256sum < "$1/$2/.map-000000.0"
mv "$1/$2/.map-000000.0" "$1/$2/map-000000"`, by, fmt.Sprint(size))
		if kept := keptBy(t, nodes[0], "job/"+by); len(kept) != 2 {
			t.Errorf("copies are on %v", kept)
		}
		for _, n := range nodes {
			if got := inJob(n, `sha256sum < "$1/$2/part-000000"`, by); got != want {
				t.Errorf("packed by %s, on %s: %s, want %s", by, n.Host.Name, got, want)
			}
		}
		switch went := received() - before; {
		case by == "none":
			if plain = went; plain < 2*size {
				t.Errorf("%d bytes went between nodes, which have to be twice %d", plain, size)
			}
		case went > plain/2:
			t.Errorf("packed by %s, %d bytes went between nodes, and %d as they are", by, went, plain)
		}
		nodes[0].Do("shuffle", "rm", "job/"+by)
	}
}
