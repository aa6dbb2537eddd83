package plan

import (
	"fmt"
	"sync"

	"rankfs/meta"
	"rankfs/meta/assign"
)

// A placement assigns positions to ranks by which hosts hold the chunks.
//
// It is a pure function of the cut, of where the ranks are, and of the index, which
// is the same file everywhere: nodes that agree on these agree on every batch. No
// record changes its step by it, and no rank the number of its positions. It may be
// used concurrently.
//
// The lock guards the steps that are remembered. One is divided without it, twice if two
// callers ask at once: both find the same.
type placement struct {
	plan    *Plan
	chunks  *stretches // where a position is a chunk; the rest is for records
	planner *assign.Planner
	owners  *allotment

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
	owned, err := p.version.allot(seats)
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
	l := &placement{plan: p, planner: planner, owners: owned}
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

// owner is the host that fetches a chunk, where positions are records.
func (l *placement) owner(chunk int) string { return l.owners.hosts[l.owners.ownerOf[chunk]] }

// positions are the positions of a batch, ascending.
func (l *placement) positions(rank, step uint64) (run, error) {
	if l.chunks != nil {
		return l.chunkOf(rank, step)
	}
	d, err := l.divideStep(step)
	if err != nil {
		return run{}, err
	}
	return listed(step*l.plan.cut.Global, d.Of(int(rank))), nil
}

// listed is the run of a list of positions, counted from first.
func listed(first uint64, list []int32) run {
	return run{first: first, n: uint64(len(list)), list: list}
}

func (l *placement) divideStep(step uint64) (assign.Division, error) {
	if d, ok := l.remembered(step); ok {
		return d, nil
	}
	p := l.plan
	strict, err := assign.StrictStep(p.cut, step)
	if err != nil {
		return assign.Division{}, err
	}
	of := make([]int32, strict.Len())
	for i := range of {
		record := p.order.At((step*p.cut.Global + uint64(i)) % p.cut.N)
		of[i] = l.owners.ownerOf[p.version.index.ChunkOf(record)]
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

// placeChunks places the batches of a view whose batches are chunks.
func (p *Plan) placeChunks(seats []Seat, hosts *Hosts, ranks []int32) {
	s := newStretches(p.version.index, p.cut, p.order.At, hosts, ranks)
	s.racks = true
	if !s.near().Matters() {
		return
	}
	p.id = p.identify(p.decidedBy(seats) + s.kind())
	p.placement = &placement{plan: p, chunks: s}
}

// chunkOf is the position of a batch that is a chunk; none if the rank has none in the
// step.
func (l *placement) chunkOf(rank, step uint64) (run, error) {
	key := l.stretchOf(step)
	d, err := l.plan.version.divisions.get(key, func() (assign.Division, error) {
		return l.chunks.divide(key.number)
	})
	if err != nil {
		return run{}, err
	}
	return l.chunkIn(d, rank, step), nil
}

// known is chunkOf, if the stretch is divided already.
func (l *placement) known(rank, step uint64) (r run, ok bool) {
	d, ok := l.plan.version.divisions.find(l.stretchOf(step))
	if !ok {
		return run{}, false
	}
	return l.chunkIn(d.Division, rank, step), true
}

// stretchOf is the stretch that has a step.
func (l *placement) stretchOf(step uint64) division {
	return division{l.plan.id, step / l.chunks.steps}
}

// chunkIn is the position of a batch in its stretch.
func (l *placement) chunkIn(d assign.Division, rank, step uint64) run {
	all, at := d.Of(int(rank)), step%l.chunks.steps
	if at >= uint64(len(all)) {
		return run{}
	}
	return listed(l.chunks.first(step/l.chunks.steps), all[at:at+1])
}

// reader is the rank and step that read a position, if its stretch is divided already.
func (l *placement) reader(position uint64) (rank, step uint64, ok bool) {
	if l.chunks == nil {
		return 0, 0, false
	}
	number := position / (l.chunks.steps * l.chunks.cut.Global)
	places := l.plan.version.divisions.places(division{l.plan.id, number})
	position -= l.chunks.first(number)
	if position >= uint64(len(places)) {
		return 0, 0, false
	}
	at := places[position]
	return uint64(at.rank), number*l.chunks.steps + uint64(at.step), true
}
