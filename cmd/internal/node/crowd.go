package node

import (
	"errors"
	"fmt"

	"rankfs/cache"
	"rankfs/meta"
)

// crowd says it when the ranks that a node has of a view need more for one batch
// each than the cache has: ranks that take each step together could not. It is
// reckoned with batches of the mean size.
func (n *Node) crowd(v meta.View, c *content) string {
	x := c.index
	cut := v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	if cut.N == 0 {
		return ""
	}
	batch := int64(float64(x.Bytes()) * min(1, float64(cut.Global)/float64(cut.Ranks)/float64(cut.N)))
	nodes := uint64(0)
	for _, m := range n.member.machine.Nodes() {
		if m.Up && !m.Drained {
			nodes++
		}
	}
	here := (v.Ranks + max(nodes, 1) - 1) / max(nodes, 1)
	memory := n.config.RAMBytes
	for _, d := range n.config.NVMe {
		memory += d.Bytes
	}
	if here < 2 || float64(batch)*float64(here) <= float64(memory) {
		return ""
	}
	return fmt.Sprintf("%d ranks on a node, each with a batch of %s, need %s together, and there are %s: %s",
		here, roughly(batch), roughly(batch*int64(here)), roughly(memory), roomier(batch*int64(here)))
}

// crowded adds to the error of an open that was refused in a crowd what would be
// enough for all ranks that the node has of the view.
func (n *Node) crowded(err error, v *view) error {
	var c *cache.Crowd
	if !errors.As(err, &c) {
		return err
	}
	return fmt.Errorf("%w; %s", err, roomier(max(c.Held+c.Size, c.Size*int64(len(v.ranksHere(n))))))
}

// roomier says how to get room for so many bytes.
func roomier(bytes int64) string {
	return fmt.Sprintf("mount with --ram %s or more, add --nvme DIR:SIZE, or make batches smaller", roughly(bytes))
}

// roughly is a size for people, and for --ram: rounded up, but to no more than a
// hundredth above.
func roughly(bytes int64) string {
	unit := int64(1)
	for unit*100<<10 <= bytes && unit < 1<<30 {
		unit <<= 10
	}
	return meta.FormatBytes(uint64((bytes + unit - 1) / unit * unit))
}
