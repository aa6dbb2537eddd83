package meta_test

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
)

var tails = []meta.Tail{meta.TailKeep, meta.TailDrop, meta.TailPad}

// anyCut draws cuts small enough to go through whole.
var anyCut = rapid.Custom(func(t *rapid.T) meta.Cut {
	return meta.Cut{
		N:      rapid.Uint64Range(0, 2000).Draw(t, "N"),
		Global: rapid.OneOf(rapid.Uint64Range(1, 20), rapid.Uint64Range(1, 3000)).Draw(t, "Global"),
		Ranks:  rapid.OneOf(rapid.Uint64Range(1, 9), rapid.Uint64Range(1, 100)).Draw(t, "Ranks"),
		Tail:   rapid.SampledFrom(tails).Draw(t, "Tail"),
	}
})

func TestCut(t *testing.T) {
	cut := func(n, global, ranks uint64, tail meta.Tail) meta.Cut {
		return meta.Cut{N: n, Global: global, Ranks: ranks, Tail: tail}
	}
	tests := []struct {
		name  string
		cut   meta.Cut
		steps uint64
		last  []meta.Span // of the last step, by rank
	}{
		{"whole steps", cut(20, 10, 2, meta.TailKeep), 2, []meta.Span{{10, 5}, {15, 5}}},
		{"a short step", cut(25, 10, 2, meta.TailKeep), 3, []meta.Span{{20, 2}, {22, 3}}},
		{"a dropped step", cut(25, 10, 2, meta.TailDrop), 2, []meta.Span{{10, 5}, {15, 5}}},
		{"a padded step", cut(25, 10, 2, meta.TailPad), 3, []meta.Span{{20, 5}, {25, 5}}},
		{"a half-padded batch", cut(23, 10, 2, meta.TailPad), 3, []meta.Span{{20, 5}, {25, 5}}},
		{"padded more than once round", cut(3, 10, 2, meta.TailPad), 1, []meta.Span{{0, 5}, {5, 5}}},
		{"fewer than ranks", cut(2, 10, 4, meta.TailKeep), 1, []meta.Span{{0, 0}, {0, 1}, {1, 0}, {1, 1}}},
		{"nothing kept", cut(0, 10, 2, meta.TailKeep), 0, nil},
		{"nothing padded", cut(0, 10, 2, meta.TailPad), 0, nil},
		{"all dropped", cut(9, 10, 2, meta.TailDrop), 0, nil},
		{"2^63, a step of everything", cut(1<<63, 1<<63, 2, meta.TailKeep), 1, []meta.Span{{0, 1 << 62}, {1 << 62, 1 << 62}}},
		{"2^63, padded", cut(1<<63-1, 1<<40, 2, meta.TailPad), 1 << 23, []meta.Span{
			{1<<63 - 1<<40, 1 << 39}, {1<<63 - 1<<39, 1 << 39}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.cut.Steps(); got != tt.steps {
				t.Fatalf("%d steps, want %d", got, tt.steps)
			}
			for rank, want := range tt.last {
				if got := tt.cut.Span(uint64(rank), tt.steps-1); got != want {
					t.Errorf("rank %d has %+v, want %+v", rank, got, want)
				}
			}
		})
	}
}

// Each tail is what it says, counted position by position.
func TestCutReadsEachPositionOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCut.Draw(t, "cut")
		var next uint64
		for step := range c.Steps() {
			for rank := range c.Ranks {
				s := c.Span(rank, step)
				if s.First != next {
					t.Fatalf("rank %d of step %d begins at %d, want %d", rank, step, s.First, next)
				}
				next += s.Count
			}
			if whole := next == (step+1)*c.Global; !whole && c.Tail != meta.TailKeep {
				t.Fatalf("step %d ends at %d", step, next)
			}
		}
		want := c.N
		switch rest := c.N % c.Global; {
		case c.Tail == meta.TailDrop:
			want -= rest
		case c.Tail == meta.TailPad && rest != 0:
			want += c.Global - rest
		}
		if next != want {
			t.Fatalf("%d positions, want %d of %d", next, want, c.N)
		}
	})
}

// What a step reads does not depend on the number of ranks.
func TestStepsAreTheSameForAnyRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCut.Draw(t, "cut")
		one := c
		one.Ranks = 1
		if c.Steps() != one.Steps() {
			t.Fatalf("%d steps for %d ranks, %d for one", c.Steps(), c.Ranks, one.Steps())
		}
		for step := range c.Steps() {
			want := one.Span(0, step)
			got := meta.Span{First: c.Span(0, step).First}
			for rank := range c.Ranks {
				s := c.Span(rank, step)
				if s.First != got.First+got.Count {
					t.Fatalf("rank %d of step %d begins at %d, want %d", rank, step, s.First, got.First+got.Count)
				}
				got.Count += s.Count
			}
			if got != want {
				t.Fatalf("step %d is %+v, want %+v", step, got, want)
			}
		}
	})
}

// The same at sizes that overflow if anything is multiplied carelessly:
// looked at where steps and ranks begin and end.
func TestCutOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := meta.Cut{
			N:      rapid.OneOf(rapid.Uint64Range(1, 1<<63), rapid.Uint64Range(1<<63-3, 1<<63)).Draw(t, "N"),
			Global: rapid.OneOf(rapid.Uint64Range(1, meta.MaxBatch), rapid.Uint64Range(1<<62, 1<<63), rapid.Uint64Range(1, 3)).Draw(t, "Global"),
			Ranks:  rapid.OneOf(rapid.Uint64Range(1, meta.MaxRanks), rapid.Just(uint64(meta.MaxRanks))).Draw(t, "Ranks"),
			Tail:   rapid.SampledFrom(tails).Draw(t, "Tail"),
		}
		steps := c.Steps()
		if steps == 0 {
			if c.Tail != meta.TailDrop || c.N >= c.Global {
				t.Fatal("no steps")
			}
			return
		}
		some := rapid.Uint64Range(0, steps-1).Draw(t, "step")
		for _, step := range []uint64{0, some, steps - 1} {
			size := c.Global
			if rest := c.N - step*c.Global; rest < size && c.Tail != meta.TailPad {
				size = rest
			}
			first, last := c.Span(0, step), c.Span(c.Ranks-1, step)
			if first.First != step*c.Global || last.First+last.Count != step*c.Global+size {
				t.Fatalf("step %d runs from %+v to %+v", step, first, last)
			}
			rank := rapid.Uint64Range(0, c.Ranks-1).Draw(t, "rank")
			s := c.Span(rank, step)
			if largest := c.Span(c.Ranks-1, 0).Count; c.N >= c.Global && largest != c.Largest() {
				t.Fatalf("the largest batch has %d positions, and %d are said", largest, c.Largest())
			}
			if share := size / c.Ranks; s.Count != share && s.Count != share+1 {
				t.Fatalf("rank %d has %d of %d", rank, s.Count, size)
			}
			if rank > 0 {
				if before := c.Span(rank-1, step); before.First+before.Count != s.First {
					t.Fatalf("rank %d begins at %d, after %+v", rank, s.First, before)
				}
			}
		}
	})
}

func TestViewCut(t *testing.T) {
	records := func(n uint64) meta.BatchSize { return meta.BatchSize{Unit: meta.UnitRecords, N: n} }
	bytes := func(n uint64) meta.BatchSize { return meta.BatchSize{Unit: meta.UnitBytes, N: n} }
	chunk := meta.BatchSize{Unit: meta.UnitChunk}
	tests := []struct {
		step    meta.BatchSize
		records uint64
		bytes   int64
		chunks  uint64
		n       uint64
		global  uint64
	}{
		{records(64), 1000, 5000, 7, 1000, 64},
		{records(4096), 1000, 5000, 7, 1000, 4096},
		{chunk, 1000, 5000, 7, 7, 4},
		{chunk, 0, 0, 0, 0, 4},
		{bytes(500), 1000, 5000, 7, 1000, 100},
		{bytes(1000), 1000, 1999, 7, 1000, 500}, // 1.999 bytes on the mean, not 1
		{bytes(3), 1000, 5000, 7, 1000, 1},      // less than a record
		{bytes(500), 0, 0, 0, 0, 1},
		{bytes(500), 1000, 0, 7, 1000, 500}, // empty records count as a byte
		{bytes(meta.MaxBatch), 1 << 62, 1 << 62, 1, 1 << 62, meta.MaxBatch},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%v of %d", tt.step, tt.records), func(t *testing.T) {
			v := meta.View{Ranks: 4, Step: tt.step, Tail: meta.TailPad}
			want := meta.Cut{N: tt.n, Global: tt.global, Ranks: 4, Tail: meta.TailPad}
			if got := v.Cut(tt.records, tt.bytes, tt.chunks); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A step by bytes has as many records as come to so many bytes on the mean,
// and no record more.
func TestStepByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 1<<50).Draw(t, "records")
		size := rapid.Uint64Range(n, 1<<62).Draw(t, "bytes")
		step := rapid.Uint64Range(1, meta.MaxBatch).Draw(t, "step")
		v := meta.View{Ranks: 1, Step: meta.BatchSize{Unit: meta.UnitBytes, N: step}}
		global := v.Cut(n, int64(size), 1).Global
		// global records come to global*size/n bytes: compare with step*n/n.
		fits := func(global uint64) bool {
			high, low := bits.Mul64(global, size)
			high2, low2 := bits.Mul64(step, n)
			return high < high2 || high == high2 && low <= low2
		}
		if !fits(global) && global != 1 || fits(global+1) {
			t.Fatalf("%d records of %d bytes a step of %d", global, size/n, step)
		}
	})
}

// Whose a position is, the batch that has it says too.
func TestCutReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCut.Draw(t, "cut")
		for step := range c.Steps() {
			for rank := range c.Ranks {
				s := c.Span(rank, step)
				for p := s.First; p < min(s.First+s.Count, c.N); p++ {
					if r, at := c.Reader(p); r != rank || at != step {
						t.Fatalf("%+v: position %d is read by rank %d in step %d, want %d in %d", c, p, r, at, rank, step)
					}
				}
			}
		}
	})
}
