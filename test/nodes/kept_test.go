package nodes_test

import (
	"fmt"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// Of two nodes that read whole chunks, each reads others in another epoch. What
// the other one has it gets from there: nothing leaves HDFS a second time.
func TestAChunkLeavesTheSourceOnce(t *testing.T) {
	t.Parallel()
	const block, chunks = 1 << 20, 24
	c := cluster.Wide(t)
	dir, text := c.Dir(t), lines(chunks*block)
	// The host that has it runs no rankfs: to both nodes all chunks are alike.
	c.DataNodes()[3].Put(t, dir+"/f", text, 1, block)
	m := newTeam(t, c, c.DataNodes()[:2], "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir+"/f", "--as", "lines",
		"--ranks", "2", "--batch", "chunk", "--order", "full", "--seed", "1")
	m.Await("d")
	var seen [2]map[string]bool // by node: the chunks that it has read
	read := func(seed int) (moved int) {
		// No epoch follows this one, so that nothing of it is made ready.
		view := fmt.Sprintf("d@epoch=18446744073709551615,seed=%d", seed)
		var sums [2][]string
		daemon.Each(m.Nodes, func(i int, n *daemon.Place) {
			out, err := n.Tool("sh", "-c", `cd "$0" && sha256sum batch-*[0-9]`, fmt.Sprintf("%s/datasets/%s/rank-%d", n.Mount(), view, i))
			if err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(out) {
				sums[i] = append(sums[i], line[:64])
			}
		})
		all := make(map[string]bool)
		for i := range sums {
			if seen[i] == nil {
				seen[i] = make(map[string]bool)
			}
			for _, sum := range sums[i] {
				if all[sum] = true; !seen[i][sum] && seen[1-i][sum] {
					moved++
				}
			}
		}
		for i := range sums {
			for _, sum := range sums[i] {
				seen[i][sum] = true
			}
		}
		if len(all) != chunks {
			t.Errorf("seed %d: %d chunks of %d were read", seed, len(all), chunks)
		}
		return moved
	}
	// Without what was asked of the source beside a node that was slow, on a busy machine.
	received := func() (bytes int64) {
		for _, n := range m.Nodes {
			var s status
			n.Status(&s)
			bytes += int64(s.HDFS.Bytes) - int64(s.Peers.Hedges)*block
		}
		return bytes
	}
	before := received()
	if read(1); received()-before > chunks*block*102/100 {
		t.Errorf("%d bytes received for %d", received()-before, len(text))
	}
	for seed := 2; seed < 4; seed++ {
		before = received()
		moved := read(seed)
		again := received() - before
		t.Logf("seed %d: %d of %d chunks have another reader; %d bytes received", seed, moved, chunks, again)
		if moved == 0 {
			t.Errorf("seed %d: no chunk has another reader", seed)
		}
		// A node that does not answer for long may be passed over, on a busy machine.
		if again > int64(moved)*block/2 {
			t.Errorf("seed %d: %d bytes received once more, as %d chunks have another reader", seed, again, moved)
		}
	}
}
