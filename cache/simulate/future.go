package simulate

import (
	"math"
	"slices"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A future is which rank reads which partitions when, in an epoch and in those that
// policies see beyond it.
// Steps are counted on through all epochs.
type future struct {
	s      *Scenario
	cut    meta.Cut
	owner  []int32    // by partition: its node; nil: nothing is kept
	steps  int64      // of an epoch
	first  int64      // epoch of those below
	epochs []sequence // one more than policies see
}

// A sequence is the order of reads of an epoch.
type sequence struct {
	grains []uint32 // by position: which grain is there
	when   []uint32 // by partition, as many as it has grains: the steps that read it, ascending
}

// never is the step of a grain that an epoch leaves out, and the grain of a
// position that it does not have.
const never = math.MaxUint32

func newFuture(s *Scenario) *future {
	f := &future{s: s, cut: s.cut(s.most()), owner: s.owners(), epochs: make([]sequence, s.Horizon+1)}
	f.steps = int64(f.cut.Steps())
	for i := range f.epochs {
		f.read(i, int64(i))
	}
	return f
}

func (s *Scenario) cut(n int) meta.Cut {
	return meta.Cut{N: uint64(n), Global: uint64(s.ranks() * s.Batch), Ranks: uint64(s.ranks()), Tail: s.Tail}
}

// owners are the nodes whose ranks would read each partition in the source's order if
// it were a batch, so that all nodes have as many.
func (s *Scenario) owners() []int32 {
	if s.Once {
		return nil
	}
	owner := make([]int32, s.Partitions)
	each := meta.Cut{N: uint64(s.Partitions), Global: uint64(s.ranks()), Ranks: uint64(s.ranks())}
	for p := range owner {
		rank, _ := each.Reader(uint64(p))
		owner[p] = int32(rank) / int32(s.Ranks)
	}
	return owner
}

// goOn makes the next epoch the first.
func (f *future) goOn() {
	f.first++
	last, old := len(f.epochs)-1, f.epochs[0]
	copy(f.epochs, f.epochs[1:])
	f.epochs[last] = old
	f.read(last, f.first+int64(last))
}

// read looks into an epoch. In the source's order all are the same.
func (f *future) read(i int, epoch int64) {
	same := f.s.Order.Kind == meta.OrderNone && f.s.Reads == nil
	if same && f.epochs[0].grains != nil {
		f.epochs[i] = f.epochs[0]
		return
	}
	q := &f.epochs[i]
	if q.grains == nil {
		q.grains, q.when = make([]uint32, f.cut.N), make([]uint32, f.s.Partitions*f.s.Grains)
	}
	f.sequence(q.grains, epoch)
	for i := range q.when {
		q.when[i] = never
	}
	per := uint32(f.s.Grains)
	used := make([]uint32, f.s.Partitions)
	for p := range min(uint64(f.steps)*f.cut.Global, f.cut.N) { // padding repeats what was there
		if q.grains[p] != never {
			at := q.grains[p] / per
			q.when[at*per+used[at]] = uint32(p / f.cut.Global)
			used[at]++
		}
	}
}

// sequence finds which grain is where in an epoch.
func (f *future) sequence(grains []uint32, epoch int64) {
	if f.s.Reads == nil {
		o := order.New(f.s.Order, f.cut.N, f.s.Seed, f.s.First+uint64(epoch))
		for p := range grains {
			grains[p] = uint32(o.At(uint64(p)))
		}
		f.bringNear(grains)
		return
	}
	n := 0
	if epoch < int64(len(f.s.Reads)) {
		n = copy(grains, f.s.Reads[epoch])
	}
	for p := n; p < len(grains); p++ {
		grains[p] = never
	}
}

// bringNear has ranks read what their nodes own, as far as there is such at a time: a
// step, or where partitions are read whole, an epoch. Each reads as much as
// before.
func (f *future) bringNear(grains []uint32) {
	if !f.s.Near || f.owner == nil || f.s.Nodes == 1 {
		return
	}
	together := f.cut.Global
	if f.s.Grains == 1 && f.s.Batch == 1 {
		together = f.cut.N
	}
	at := make([][]uint32, f.s.Nodes) // by node: positions of its ranks
	for first := uint64(0); first < f.cut.N; first += together {
		these := grains[first:min(first+together, f.cut.N)]
		for p := range these {
			rank, _ := f.cut.Reader(first + uint64(p))
			n := int(rank) / f.s.Ranks
			at[n] = append(at[n], uint32(p))
		}
		var far []uint32
		read := slices.Clone(these)
		for _, g := range read {
			n := f.owner[g/uint32(f.s.Grains)]
			if len(at[n]) == 0 {
				far = append(far, g)
				continue
			}
			these[at[n][0]], at[n] = g, at[n][1:]
		}
		for n := range at {
			for _, p := range at[n] {
				these[p], far = far[0], far[1:]
			}
			at[n] = at[n][:0]
		}
	}
}

// batch calls f with the grains of a batch.
func (f *future) batch(rank int32, step int64, each func(partition int32, bytes int64)) {
	epoch := step / f.steps
	span := f.cut.Span(uint64(rank), uint64(step%f.steps))
	grains, per := f.epochs[epoch-f.first].grains, uint32(f.s.Grains)
	for p := span.First; p < span.First+span.Count; p++ {
		if g := grains[p%f.cut.N]; g != never {
			each(int32(g/per), f.s.grain(int32(g/per), int(g%per)))
		}
	}
}

// one is the first partition of a batch that is not empty.
func (f *future) one(rank int32, step int64) (partition int32) {
	span := f.cut.Span(uint64(rank), uint64(step%f.steps))
	return int32(f.epochs[step/f.steps-f.first].grains[span.First%f.cut.N] / uint32(f.s.Grains))
}

// share is how much of a whole batch a rank has in a step: less in the last one.
func (f *future) share(rank int32, step int64) float64 {
	n := 0
	f.batch(rank, step, func(int32, int64) { n++ })
	return float64(n) / float64(f.s.Batch)
}

// empty reports whether a rank has nothing in a step. What an epoch does not
// have is at its end.
func (f *future) empty(rank int32, step int64) bool {
	span := f.cut.Span(uint64(rank), uint64(step%f.steps))
	return span.Count == 0 || f.epochs[step/f.steps-f.first].grains[span.First%f.cut.N] == never
}

// next is the first step after another one that reads a partition; ok is false
// if that is not known.
func (f *future) next(partition int32, after int64) (step int64, ok bool) {
	from := max(after+1, f.first*f.steps)
	for epoch := from / f.steps; epoch-f.first < int64(len(f.epochs)); epoch++ {
		when := f.epochs[epoch-f.first].when[int(partition)*f.s.Grains : (int(partition)+1)*f.s.Grains]
		i, _ := slices.BinarySearch(when, uint32(max(0, from-epoch*f.steps)))
		if i < len(when) && when[i] != never {
			return epoch*f.steps + int64(when[i]), true
		}
	}
	return 0, false
}
