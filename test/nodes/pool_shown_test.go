package nodes_test

import (
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Any node says where copies are, what parts weigh, and what is not to be had while a node
// is down: maps that only that one has are away, and are back when it is.
func TestPoolIsShown(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3], "--pool-ram", "64MiB")
	nodes := m.Nodes
	defer func() { endJob(t, nodes) }()
	nodes[0].Do("shuffle", "create", "job/one", "maps=3", "parts=2", "copies=1")
	for i, size := range []string{"1000", "20", "3"} { // all of part 0, and a byte of part 1
		inJob(nodes[i], `python3 -c '
import os, struct, sys
name = sys.argv[1] + "/one/.map-00000" + sys.argv[2] + ".0"
open(name, "wb").write(bytes(int(sys.argv[3]) + 1))
open(name + ".idx", "wb").write(struct.pack("<3Q", 0, int(sys.argv[3]), int(sys.argv[3]) + 1))
os.rename(name, sys.argv[1] + "/one/map-00000" + sys.argv[2])' "$@"`, string(rune('0'+i)), size)
	}
	shown := func(on int, words ...string) bool {
		text := nodes[on].Do("shuffle", "show", "job/one")
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}
	for i := range nodes {
		if !shown(i, "state      sealed\n", "parts      000000 1023, 000001 3\n", "missing    0 copies\n", nodes[0].Host.Name, nodes[1].Host.Name, nodes[2].Host.Name) {
			t.Errorf("on %s: %s", nodes[i].Host.Name, nodes[i].Do("shuffle", "show", "job/one"))
		}
	}
	nodes[2].Kill()
	eventually.Within(t, patience, "what a dead node has is away", func() bool {
		return shown(0, "away       maps 2: all their copies are on nodes that are down\n", "missing    1 copies\n", "parts      not known: ", "down      1")
	})
	eventually.Within(t, patience, "health says so", func() bool {
		return strings.Contains(nodes[1].Must("cat", nodes[1].Mount()+"/.rankfs/health"), " away maps of job job of the shuffle pool cannot be read: all copies of 1 are on nodes that are down")
	})
	nodes[2].Start()
	eventually.Within(t, patience, "it is back", func() bool {
		return shown(0, "missing    0 copies\n", "parts      000000 1023, 000001 3\n") &&
			nodes[1].Must("cat", nodes[1].Mount()+"/.rankfs/health") == "ok\n"
	})
}
