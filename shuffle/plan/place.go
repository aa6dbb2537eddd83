package plan

import (
	"fmt"

	"rankfs/meta"
	"rankfs/meta/assign"
)

// Place gives p the placement that follows from where its ranks are, if that
// makes a difference: not if all batches are the same as with assign=strict.
func (p *Plan) Place(seats []Seat) error {
	hosts, ranks := Number(seats)
	if p.view.Assign == meta.AssignStrict || hosts.Len() < 2 {
		return nil
	}
	if p.view.ByChunk() {
		p.placeChunks(seats, hosts, ranks)
		return nil
	}
	if n := min(p.cut.N, p.cut.Global); n > assign.MaxPositions { // said before any of it is looked at
		return fmt.Errorf("dividing %d positions by locality %w: use assign=strict, or fewer than %d", n, meta.ErrInvalid, assign.MaxPositions)
	}
	owned, err := p.version.allotments.allot(p.version.index, seats)
	if err != nil {
		return err
	}
	sets := new(assign.Sets)
	for host := range owned.hosts {
		sets.Add(int32(host))
	}
	planner, err := assign.New(assign.Cluster{Nodes: hosts.Len(), NodeOf: ranks}, sets)
	if err != nil {
		return err
	}
	l := &placement{version: p.version, cut: p.cut, order: p.order, planner: planner, owners: owned}
	l.mu.steps = make(map[uint64]assign.Division)
	p.placement = l
	p.id = p.identify(p.decidedBy(seats) + owned.kind)
	return nil
}

// decidedBy names the things that decide the batches beside the view. Of the same version of a
// source there can be several indexes, as replicas move: this one does. And so
// does what counts as a name of a host, which was less once.
func (p *Plan) decidedBy(seats []Seat) string {
	return fmt.Sprintf(" for %v by %x under any name", seats, p.version.hash)
}

// placeChunks places the batches of a view whose batches are chunks.
func (p *Plan) placeChunks(seats []Seat, hosts *Hosts, ranks []int32) {
	s := newStretches(p.version.index, p.cut, p.order.At, hosts, ranks)
	s.racks = true
	if !s.near().Matters() {
		return
	}
	p.id = p.identify(p.decidedBy(seats) + s.kind())
	p.placement = &placement{version: p.version, cut: p.cut, order: p.order, id: p.id, chunks: s}
}
