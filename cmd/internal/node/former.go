package node

import (
	"context"
	"encoding/hex"
	"slices"

	"rankfs/cache/peers"
	"rankfs/cache/stall"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A former is a plan by which chunks were read, and the nodes of its ranks: they
// may have them still.
type former struct {
	plan  *plan.Plan
	nodes state.Runs
}

// mostFormers are asked for a chunk: the epoch before, mostly, and the one before
// that or another job.
const mostFormers = 2

// formers are the plans of a dataset that were pinned last, other than that of v,
// whose batches are chunks.
func (n *Node) formers(v meta.View, c *content) (all []former) {
	hash, own := hex.EncodeToString(c.id[:]), v.String()
	for _, pinned := range slices.Backward(n.member.machine.Plans()) {
		if pinned.Index != hash || pinned.View == own {
			continue
		}
		name, options, _ := meta.SplitView(pinned.View)
		was, err := meta.View{Dataset: name, Ranks: 1}.With(options)
		if err != nil || was.Step.Unit != meta.UnitChunk {
			continue
		}
		p := plan.New(was, c.version)
		if p.Place(n.member.seats(pinned.Nodes)) != nil {
			continue
		}
		if all = append(all, former{p, pinned.Nodes}); len(all) == mostFormers {
			break
		}
	}
	return all
}

// reader is the node whose rank read a chunk, if that is known or soon found out.
func (f former) reader(chunk int) (node string, ok bool) {
	rank, ok := f.plan.Reader(chunk)
	if !ok {
		return "", false
	}
	for _, run := range f.nodes {
		if rank < run.Count {
			return run.Node, true
		}
		rank -= run.Count
	}
	return "", false
}

// keepers are other nodes that may have a chunk, the likeliest first.
func (p *filler) keepers(chunk int) (nodes []string) {
	for _, f := range p.formers() {
		node, ok := f.reader(chunk)
		if ok && node != p.content.owners.Self && p.content.owners.Up(node) && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// receiveKept has a node that keeps a chunk send it. What is there after that
// failed is overwritten: the source has it too.
func (f *fill) receiveKept(ctx context.Context, number int, c index.Chunk, room []byte) bool {
	for _, node := range f.filler.keepers(number) {
		want := peers.Want{Dataset: f.filler.content.id, Runs: []peers.Run{{First: c.First, N: c.Records}}, Wait: patience, Kept: true}
		m := stall.Enter(ctx, stall.Peer)
		if f.filler.peers.Gather(ctx, node, want, [][]byte{room}) == nil {
			m.Leave(int64(len(room)))
			return true
		}
		m.Leave(0)
	}
	return false
}
