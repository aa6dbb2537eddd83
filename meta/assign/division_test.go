package assign_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/assign"
)

// What assign=strict divides is what meta.Cut says, for any cut.
func TestStrict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := meta.Cut{
			N:      rapid.Uint64Range(0, 300).Draw(t, "N"),
			Global: rapid.Uint64Range(1, 40).Draw(t, "Global"),
			Ranks:  rapid.Uint64Range(1, 20).Draw(t, "Ranks"),
			Tail:   rapid.SampledFrom([]meta.Tail{meta.TailKeep, meta.TailDrop, meta.TailPad}).Draw(t, "Tail"),
		}
		want := make([][]int32, c.Ranks) // the epoch
		for step := range c.Steps() {
			d, err := assign.StrictStep(c, step)
			if err != nil {
				t.Fatal(err)
			}
			for rank := range c.Ranks {
				span := c.Span(rank, step)
				var list []int32
				for p := span.First; p < span.First+span.Count; p++ {
					list = append(list, int32(p-step*c.Global))
					want[rank] = append(want[rank], int32(p))
				}
				if got := d.Of(int(rank)); !slices.Equal(got, list) {
					t.Fatalf("rank %d of step %d: %v, want %v", rank, step, got, list)
				}
			}
		}
		d, err := assign.StrictSteps(c, 0, c.Steps())
		if err != nil {
			t.Fatal(err)
		}
		for rank, list := range want {
			if got := d.Of(rank); !slices.Equal(got, list) {
				t.Fatalf("rank %d: %v, want %v", rank, got, list)
			}
		}
		if c.Steps() == 0 {
			return
		}
		first := rapid.Uint64Range(0, c.Steps()-1).Draw(t, "first")
		n := rapid.Uint64Range(0, c.Steps()-first).Draw(t, "n")
		if d, err = assign.StrictSteps(c, first, n); err != nil {
			t.Fatal(err)
		}
		for rank, list := range want {
			var part []int32
			for _, p := range list {
				if at := uint64(p); at >= first*c.Global && at < (first+n)*c.Global {
					part = append(part, p-int32(first*c.Global))
				}
			}
			if got := d.Of(rank); !slices.Equal(got, part) {
				t.Fatalf("rank %d of %d steps from %d on: %v, want %v", rank, n, first, got, part)
			}
		}
	})
}

// Sets that are alike have the same number, others have not.
func TestNumberedSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sets assign.Sets
		numbers := make(map[string]int32)
		for range rapid.IntRange(0, 300).Draw(t, "sets") {
			set := rapid.SliceOfN(rapid.Int32Range(0, 6), 0, 3).Draw(t, "set")
			n, err := sets.Number(set)
			if err != nil {
				t.Fatal(err)
			}
			want, known := numbers[fmt.Sprint(set)]
			if !known {
				want = int32(len(numbers))
				numbers[fmt.Sprint(set)] = want
			}
			if n != want || !slices.Equal(sets.At(n), set) {
				t.Fatalf("%v has number %d, which is %v; want %d", set, n, sets.At(n), want)
			}
		}
		if sets.Len() != len(numbers) {
			t.Fatalf("%d sets, want %d", sets.Len(), len(numbers))
		}
	})
}

func TestTooLarge(t *testing.T) {
	cut := meta.Cut{N: 1 << 63, Global: 1 << 62, Ranks: 4}
	if _, err := assign.StrictStep(cut, 1); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a step of 2^62: %v", err)
	}
	if _, err := assign.StrictSteps(meta.Cut{N: 1 << 40, Global: 1, Ranks: 1}, 0, meta.Cut{N: 1 << 40, Global: 1, Ranks: 1}.Steps()); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("an epoch of 2^40: %v", err)
	}
	if _, err := assign.StrictStep(meta.Cut{N: 10, Global: 10, Ranks: meta.MaxRanks + 1}, 0); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("too many ranks: %v", err)
	}
	if _, err := assign.StrictSteps(meta.Cut{N: 0, Global: 10, Ranks: 1 << 62}, 0, meta.Cut{N: 0, Global: 10, Ranks: 1 << 62}.Steps()); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("too many ranks for nothing: %v", err)
	}
	for _, counts := range [][]int32{{1, -1}, {assign.MaxPositions, 1}, {math.MaxInt32, math.MaxInt32, math.MaxInt32}} {
		if _, err := assign.Contiguous(counts); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("shares %v: %v", counts, err)
		}
	}
}

func TestInvalid(t *testing.T) {
	sets := func(list ...[]int32) *assign.Sets {
		var s assign.Sets
		for _, nodes := range list {
			s.Add(nodes...)
		}
		return &s
	}
	clusters := []struct {
		name    string
		cluster assign.Cluster
		sets    *assign.Sets
	}{
		{"no ranks", assign.Cluster{Nodes: 2}, sets()},
		{"negative nodes", assign.Cluster{Nodes: -1, NodeOf: []int32{0}}, sets()},
		{"too many nodes", assign.Cluster{Nodes: 1 << 30, NodeOf: []int32{0}}, sets()},
		{"a rank on no node", assign.Cluster{Nodes: 2, NodeOf: []int32{0, 2}}, sets()},
		{"a rank below all", assign.Cluster{Nodes: 2, NodeOf: []int32{-1}}, sets()},
		{"racks of other nodes", assign.Cluster{Nodes: 2, NodeOf: []int32{0}, RackOf: []int32{0}}, sets()},
		{"a holder that is no node", assign.Cluster{Nodes: 2, NodeOf: []int32{0}}, sets([]int32{0, 2})},
		{"a holder below all", assign.Cluster{Nodes: 2, NodeOf: []int32{0}}, sets([]int32{-1})},
	}
	for _, tt := range clusters {
		if _, err := assign.New(tt.cluster, tt.sets); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	p, err := assign.New(assign.Cluster{Nodes: 2, NodeOf: []int32{0, 1}}, sets([]int32{0}))
	if err != nil {
		t.Fatal(err)
	}
	strict := contiguous(t, []int32{1, 1})
	calls := []struct {
		name string
		call func() error
	}{
		{"a step of other ranks", func() error { _, err := p.Step(contiguous(t, []int32{2}), []int32{0, 0}); return err }},
		{"a step of other positions", func() error { _, err := p.Step(strict, []int32{0}); return err }},
		{"an unknown set", func() error { _, err := p.Step(strict, []int32{0, 1}); return err }},
		{"a set below all", func() error { _, err := p.Epoch(strict, []int32{0, -1}); return err }},
		{"readers of other positions", func() error { _, err := p.Serve([]int32{0}, []int32{0, 0}); return err }},
		{"a reader that is no node", func() error { _, err := p.Serve([]int32{0, 2}, []int32{0, 0}); return err }},
		{"a reader below all", func() error { _, err := p.Serve([]int32{0, -1}, []int32{0, 0}); return err }},
		{"an unknown set of a reader", func() error { _, err := p.Serve([]int32{0}, []int32{1}); return err }},
		{"an unknown set of a program", func() error { _, err := p.Static([]int32{7}, assign.Weights{}); return err }},
	}
	for _, tt := range calls {
		if err := tt.call(); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if d, err := p.Step(strict, []int32{0, 0}); err != nil || d.Len() != 2 {
		t.Errorf("after all of that: %v, %v", d, err)
	}
}
