package trace

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// A Trace is the steps of a view that one rank opened, in order. It is kept as runs,
// so an epoch in order costs one; the first are forgotten when there are too many.
type Trace struct {
	View      string
	Rank      uint64
	Steps     uint64 // of the view; what was opened is below
	Forgotten uint64 // opens before those of Runs
	Runs      []Run
}

// A Run is so many opens, each a stride after the one before.
type Run struct {
	First  uint64
	Stride int64
	Count  uint64
}

// The bounds of a trace: 96 KiB, and what it takes to go through all opens.
const (
	MaxRuns  = 4096
	maxOpens = MaxRuns * maxOfRun
	maxOfRun = 1 << 14
)

func (r Run) at(i uint64) uint64 { return r.First + uint64(int64(i)*r.Stride) }
func (r Run) last() uint64       { return r.at(r.Count - 1) }

// Add notes an open.
func (t *Trace) Add(step uint64) {
	if n := len(t.Runs); n > 0 {
		r := &t.Runs[n-1]
		stride := int64(step - r.last())
		if r.Count == 1 {
			r.Stride = stride
		}
		if r.Stride == stride && r.Count < maxOfRun {
			r.Count++
			return
		}
		if n == MaxRuns {
			t.forget(MaxRuns / 4)
		}
	}
	t.Runs = append(t.Runs, Run{First: step, Count: 1})
}

func (t *Trace) forget(runs int) {
	for _, r := range t.Runs[:runs] {
		t.Forgotten += r.Count
	}
	t.Runs = slices.Delete(t.Runs, 0, runs)
}

// Opens is the number of opens of the runs.
func (t *Trace) Opens() (n uint64) {
	for _, r := range t.Runs {
		n += r.Count
	}
	return n
}

// All are the steps, in the order in which they were opened.
func (t *Trace) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, r := range t.Runs {
			for i := range r.Count {
				if !yield(r.at(i)) {
					return
				}
			}
		}
	}
}

// Scaled are the steps as a view of so many would have them: where it has more,
// an open stands for a stretch of them in order; where it has fewer, for one of
// several.
func (t *Trace) Scaled(steps uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for s := range t.All() {
			for to := scale(s, t.Steps, steps); to < scale(s+1, t.Steps, steps); to++ {
				if !yield(to) {
					return
				}
			}
		}
	}
}

// scale is the first step of so many that s of others stands for.
func scale(s, of, steps uint64) uint64 { return (s*steps + of - 1) / of }

// Passes divides the opens where one is repeated, so that each part has a step
// once at most, as a view of so many steps would have them.
func (t *Trace) Passes(steps uint64) (passes [][]uint32) {
	seen := make([]int, steps)
	for s := range t.Scaled(steps) {
		if n := len(passes); n == 0 || seen[s] == n {
			passes = append(passes, nil)
		}
		n := len(passes)
		seen[s] = n
		passes[n-1] = append(passes[n-1], uint32(s))
	}
	return passes
}

// A Move is from one open to the next: by so many steps, that often.
type Move struct {
	By    int64
	Times uint64
}

// Moves are the edges between opens, by their length, the most frequent first.
func (t *Trace) Moves() []Move {
	times := make(map[int64]uint64)
	for i, r := range t.Runs {
		if r.Count > 1 {
			times[r.Stride] += r.Count - 1
		}
		if i > 0 {
			times[int64(r.First-t.Runs[i-1].last())]++
		}
	}
	moves := make([]Move, 0, len(times))
	for _, by := range slices.Sorted(maps.Keys(times)) {
		moves = append(moves, Move{by, times[by]})
	}
	slices.SortStableFunc(moves, func(a, b Move) int { return cmp.Compare(b.Times, a.Times) })
	return moves
}
