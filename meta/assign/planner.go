package assign

import (
	"fmt"
	"slices"
	"sync"

	"rankfs/meta"
	"rankfs/meta/lists"
)

// A Cluster says where the ranks of a job are.
type Cluster struct {
	Nodes  int     // nodes are 0 to Nodes-1, with ranks or without
	NodeOf []int32 // the node of each rank
	RackOf []int32 // the rack of each node, below zero if unknown; nil if all are
}

// Sets is a table of the sets of nodes that hold a position. The zero value is empty.
// Sets may be equal, may be empty, and name a node twice; that and the order
// within a set make no difference to any result.
type Sets struct{ lists.Table }

// maxNodes bounds how deep a search can be: two calls for each node.
const maxNodes = 1 << 16

// A Planner divides the steps of one job. It holds what is the same for every
// step and never changes: any number of goroutines may use it.
//
// Inside, nodes are numbered by their first rank, racks by their first node,
// and nodes without ranks have no number, since no rank reads there. So a cluster's
// numbers for its nodes make no difference. Nodes and racks together are targets:
// rack k is target nodes+k.
type Planner struct {
	sets      *Sets
	nodeOf    []int32 // by rank
	outer     []int32 // what the cluster calls a node
	inner     []int32 // and back: -1 without ranks
	rackOf    []int32 // by node, -1 if unknown
	innerRack []int32 // the same of each node of the cluster; -1 too if the rack has no ranks
	racks     table   // the nodes of each rack

	kindOf []int32 // by set; sets of one kind can be read at the same costs
	kinds  kinds

	works sync.Pool // of *work
}

// New returns a planner for a job whose data is held as sets say. The caller
// must not change the sets any more.
func New(c Cluster, sets *Sets) (*Planner, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Planner{sets: sets, inner: filled(c.Nodes, -1)}
	for _, node := range c.NodeOf {
		if p.inner[node] < 0 {
			p.inner[node] = int32(len(p.outer))
			p.outer = append(p.outer, node)
		}
		p.nodeOf = append(p.nodeOf, p.inner[node])
	}
	p.numberRacks(c.RackOf)
	if err := p.sortKinds(); err != nil {
		return nil, err
	}

	return p, nil
}

func (c Cluster) check() error {
	if c.Nodes < 0 || c.Nodes > maxNodes || len(c.NodeOf) < 1 || len(c.NodeOf) > meta.MaxRanks {
		return fmt.Errorf("cluster of %d ranks on %d nodes %w: use 1 to %d ranks, %d nodes", len(c.NodeOf), c.Nodes, meta.ErrInvalid, meta.MaxRanks, maxNodes)
	}
	for rank, node := range c.NodeOf {
		if node < 0 || int(node) >= c.Nodes {
			return fmt.Errorf("node %d of rank %d %w: there are %d", node, rank, meta.ErrInvalid, c.Nodes)
		}
	}
	if c.RackOf != nil && len(c.RackOf) != c.Nodes {
		return fmt.Errorf("list of racks of %d nodes %w: there are %d", len(c.RackOf), meta.ErrInvalid, c.Nodes)
	}
	return nil
}

// numberRacks numbers the racks that have ranks.
func (p *Planner) numberRacks(rackOf []int32) {
	p.innerRack = filled(len(p.inner), -1)
	number := make(map[int32]int32)
	for _, node := range p.outer {
		if rackOf == nil || rackOf[node] < 0 {
			continue
		}
		if _, known := number[rackOf[node]]; !known {
			number[rackOf[node]] = int32(len(number))
		}
	}
	for node, rack := range rackOf {
		if k, known := number[rack]; known {
			p.innerRack[node] = k
		}
	}
	for _, node := range p.outer {
		p.rackOf = append(p.rackOf, p.innerRack[node])
	}
	p.racks = tabulate(len(number), p.rackOf)
}

// sortKinds finds the targets of each set. Many sets have the same, the more
// so the fewer nodes have ranks.
func (p *Planner) sortKinds() (err error) {
	var targets []int32
	p.kinds.nodes = int32(len(p.outer))
	p.kindOf = make([]int32, p.sets.Len())
	for set := range p.kindOf {
		targets = targets[:0]
		for _, node := range p.sets.At(int32(set)) {
			if node < 0 || int(node) >= len(p.inner) {
				return fmt.Errorf("node %d of set %d %w: there are %d", node, set, meta.ErrInvalid, len(p.inner))
			}
			if n := p.inner[node]; n >= 0 {
				targets = append(targets, n)
			}
			if k := p.innerRack[node]; k >= 0 {
				targets = append(targets, p.kinds.nodes+k)
			}
		}
		if p.kindOf[set], err = p.kinds.Number(distinct(targets)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Planner) check(strict Division, of []int32) error {
	if strict.Ranks() != len(p.nodeOf) || strict.Len() != len(of) {
		return fmt.Errorf("%d positions for %d ranks %w: there are %d ranks, and the holders of %d positions are given",
			strict.Len(), strict.Ranks(), meta.ErrInvalid, len(p.nodeOf), len(of))
	}
	return p.checkSets(of)
}

func (p *Planner) checkSets(of []int32) error {
	if len(of) > MaxPositions {
		return fmt.Errorf("list of %d positions %w: use at most %d", len(of), meta.ErrInvalid, MaxPositions)
	}
	for position, set := range of {
		if uint(set) >= uint(len(p.kindOf)) {
			return fmt.Errorf("set %d of position %d %w: there are %d", set, position, meta.ErrInvalid, len(p.kindOf))
		}
	}
	return nil
}

func distinct(s []int32) []int32 {
	slices.Sort(s)
	return slices.Compact(s)
}
