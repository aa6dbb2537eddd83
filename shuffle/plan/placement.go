package plan

import (
	"sync"

	"rankfs/meta"
	"rankfs/meta/assign"
	"rankfs/shuffle/order"
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
	version *Version
	cut     meta.Cut
	order   order.Order
	id      [16]byte   // of the plan, where a position is a chunk
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

// A run is the positions of a batch.
type run struct {
	first, n uint64
	list     []int32 // of them, counted from first; nil: they follow one another
}

func (r run) at(i uint64) uint64 {
	if r.list != nil {
		return r.first + uint64(r.list[i])
	}
	return r.first + i
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
	return listed(step*l.cut.Global, d.Of(int(rank))), nil
}

// listed is the run of a list of positions, counted from first.
func listed(first uint64, list []int32) run {
	return run{first: first, n: uint64(len(list)), list: list}
}

func (l *placement) divideStep(step uint64) (assign.Division, error) {
	if d, ok := l.remembered(step); ok {
		return d, nil
	}
	strict, err := assign.StrictStep(l.cut, step)
	if err != nil {
		return assign.Division{}, err
	}
	of := make([]int32, strict.Len())
	for i := range of {
		record := l.order.At((step*l.cut.Global + uint64(i)) % l.cut.N)
		of[i] = l.owners.ownerOf[l.version.index.ChunkOf(record)]
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

// chunkOf is the position of a batch that is a chunk; none if the rank has none in the
// step.
func (l *placement) chunkOf(rank, step uint64) (run, error) {
	key := l.stretchOf(step)
	d, err := l.version.divisions.get(key, func() (assign.Division, error) {
		return l.chunks.divide(key.number)
	})
	if err != nil {
		return run{}, err
	}
	return l.chunkIn(d, rank, step), nil
}

// known is chunkOf, if the stretch is divided already.
func (l *placement) known(rank, step uint64) (r run, ok bool) {
	d, ok := l.version.divisions.find(l.stretchOf(step))
	if !ok {
		return run{}, false
	}
	return l.chunkIn(d.Division, rank, step), true
}

// stretchOf is the stretch that has a step.
func (l *placement) stretchOf(step uint64) division {
	return division{l.id, step / l.chunks.steps}
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
	places := l.version.divisions.places(division{l.id, number})
	position -= l.chunks.first(number)
	if position >= uint64(len(places)) {
		return 0, 0, false
	}
	at := places[position]
	return uint64(at.rank), number*l.chunks.steps + uint64(at.step), true
}
