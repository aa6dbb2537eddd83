package node

import (
	"fmt"
	"sync"

	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// A placement is who reads what where it depends on who has it: a pure function
// of the cut, of where the ranks are, and of the index, which is the same file
// everywhere. So nodes that agree on these agree on every batch.
type placement struct {
	filler  *filler
	chunks  *stretches // where a position is a chunk; the rest is for records
	planner *assign.Planner
	homes   *allotment

	mu struct {
		sync.Mutex
		steps map[uint64]assign.Division
		ring  [keptSteps]uint64
		next  int
	}
}

// keptSteps are remembered: ranks go through an epoch side by side, and those
// of one node want the same steps.
const keptSteps = 32

// place gives p the placement that follows from where its ranks are, if that
// makes a difference: not if all batches are the same as with assign=strict.
func (p *filler) place(seats []plan.Seat) error {
	hosts, ranks := plan.Number(seats)
	if p.view.Assign == meta.AssignStrict || hosts.Len() < 2 {
		return nil
	}
	if p.view.Step.Unit == meta.UnitChunk {
		p.placeChunks(seats, hosts, ranks)
		return nil
	}
	if n := min(p.cut.N, p.cut.Global); n > assign.MaxPositions { // said before any of it is looked at
		return fmt.Errorf("dividing %d positions by locality %w: use assign=strict, or fewer than %d", n, meta.ErrInvalid, assign.MaxPositions)
	}
	homes, err := p.content.allot(seats)
	if err != nil {
		return err
	}
	sets := new(assign.Sets)
	for host := range homes.hosts {
		sets.Add(int32(host))
	}
	planner, err := assign.New(assign.Cluster{Nodes: hosts.Len(), NodeOf: ranks}, sets)
	if err != nil {
		return err
	}
	l := &placement{filler: p, planner: planner, homes: homes}
	l.mu.steps = make(map[uint64]assign.Division)
	p.placement = l
	p.id = p.identify(p.decidedBy(seats) + homes.kind)
	return nil
}

// decidedBy is what decides the batches beside the view. Of the same version of a
// source there can be several indexes, as replicas move: this one does. And so
// does what counts as a name of a host, which was less once.
func (p *filler) decidedBy(seats []plan.Seat) string {
	return fmt.Sprintf(" for %v by %x under any name", seats, p.content.id)
}

// home is the host that fetches a chunk, where positions are records.
func (l *placement) home(chunk int) string { return l.homes.hosts[l.homes.homeOf[chunk]] }

// positions are those of a batch, ascending, counted from base.
func (l *placement) positions(rank, step uint64) (of []int32, base uint64, err error) {
	if l.chunks != nil {
		return l.chunkOf(rank, step)
	}
	d, err := l.divideStep(step)
	if err != nil {
		return nil, 0, err
	}
	return d.Of(int(rank)), step * l.filler.cut.Global, nil
}

func (l *placement) divideStep(step uint64) (assign.Division, error) {
	if d, ok := l.remembered(step); ok {
		return d, nil
	}
	p := l.filler
	strict, err := assign.StrictStep(p.cut, step)
	if err != nil {
		return assign.Division{}, err
	}
	of := make([]int32, strict.Len())
	for i := range of {
		record := p.order.At((step*p.cut.Global + uint64(i)) % p.cut.N)
		of[i] = l.homes.homeOf[p.content.index.ChunkOf(record)]
	}
	d, err := l.planner.Step(strict, of)
	if err == nil {
		l.remember(step, d)
	}
	return d, err
}

func (l *placement) remembered(step uint64) (assign.Division, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.mu.steps[step]
	return d, ok
}

func (l *placement) remember(step uint64, d assign.Division) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.mu.steps[step]; ok {
		return
	}
	if len(l.mu.steps) == keptSteps {
		delete(l.mu.steps, l.mu.ring[l.mu.next])
	}
	l.mu.steps[step] = d
	l.mu.ring[l.mu.next] = step
	l.mu.next = (l.mu.next + 1) % keptSteps
}
