package assign_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"rankfs/meta/assign"
)

// staticCase draws an instance small enough to try every division of it:
// chunks of up to three ranks on up to three nodes.
func staticCase(r *rand.Rand) (caseOf, assign.Weights) {
	c := caseOf{cluster: assign.Cluster{Nodes: 3}}
	for range 1 + r.IntN(3) {
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(r.IntN(3)))
	}
	for chunk := range r.IntN(8) {
		var set []int32
		for range r.IntN(3) {
			set = append(set, int32(r.IntN(3)))
		}
		c.holders, c.of = append(c.holders, set), append(c.of, int32(chunk))
	}
	return c, assign.Weights{Local: uint32(r.IntN(30)), Time: uint32(r.IntN(4))}
}

func (c caseOf) static(t fataler, w assign.Weights) assign.Static {
	t.Helper()
	s, err := c.planner(t).Static(c.of, w)
	if err != nil {
		t.Fatalf("static: %v", err)
	}
	return s
}

// outcome is what one division comes to.
func (c caseOf) outcome(readers []int) (p assign.Point) {
	counts := make([]int, len(c.cluster.NodeOf))
	for chunk, rank := range readers {
		counts[rank]++
		if c.held(chunk, int(c.cluster.NodeOf[rank])) {
			p.Local++
		}
	}
	p.Most = slices.Max(counts)
	return p
}

// all calls try with every way to give chunks to ranks.
func all(chunks, ranks int, try func(readers []int)) {
	readers := make([]int, chunks)
	for {
		try(readers)
		i := 0
		for ; i < chunks && readers[i] == ranks-1; i++ {
			readers[i] = 0
		}
		if i == chunks {
			return
		}
		readers[i]++
	}
}

// Every division is tried: the curve is exactly those that none beats, and the
// best is as good as any.
func TestStaticAgainstBruteForce(t *testing.T) {
	longer := 0
	for seed := range uint64(2000) {
		c, weights := staticCase(rand.New(rand.NewPCG(seed, 7)))
		got := c.static(t, weights)
		least := make(map[int]int) // that the busiest rank reads, by how many are local
		all(len(c.of), len(c.cluster.NodeOf), func(readers []int) {
			p := c.outcome(readers)
			if most, ok := least[p.Local]; !ok || p.Most < most {
				least[p.Local] = p.Most
			}
		})
		want := pareto(least, len(c.of))
		if !slices.Equal(got.Curve, want) {
			t.Fatalf("seed %d: curve %v, want %v: %v", seed, got.Curve, want, c)
		}
		if len(c.of) > 0 {
			score := func(p assign.Point) *big.Rat {
				time := big.NewRat(int64(weights.Time)*int64(want[0].Most), int64(p.Most))
				return time.Add(time, big.NewRat(int64(weights.Local)*int64(p.Local), int64(len(c.of))))
			}
			best := new(big.Rat)
			for local, most := range least {
				if s := score(assign.Point{Local: local, Most: most}); s.Cmp(best) > 0 {
					best = s
				}
			}
			if s := score(got.Curve[got.Best]); s.Cmp(best) != 0 {
				t.Fatalf("seed %d: scores %v, could score %v", seed, s, best)
			}
		}
		checkStatic(t, c, got)
		longer += min(got.Best, 1)
	}
	if longer < 30 {
		t.Errorf("locality was worth time in %d cases: these test too little", longer)
	}
}

func pareto(least map[int]int, chunks int) (curve []assign.Point) {
	for local := chunks; local >= 0; local-- {
		if most, ok := least[local]; ok && (len(curve) == 0 || most < curve[len(curve)-1].Most) {
			curve = append(curve, assign.Point{Local: local, Most: most})
		}
	}
	slices.Reverse(curve)
	return curve
}

// checkStatic checks that the division is whole, and as local and as short as
// the point of the curve says.
func checkStatic(t fataler, c caseOf, s assign.Static) {
	t.Helper()
	readers := make([]int, len(c.of))
	var counts []int32
	for rank, list := range ranks(s.Division) {
		counts = append(counts, int32(len(list)))
		for _, chunk := range list {
			readers[chunk] = rank
		}
	}
	c.strict = contiguous(t, counts)
	checkWhole(t, c, s.Division)
	if got, want := c.outcome(readers), s.Curve[s.Best]; got != want {
		t.Fatalf("%v, should be %v: %v, %v", got, want, c, ranks(s.Division))
	}
}

// Too large to try all: for each quota of all ranks, the curve says what a maximum
// flow says.
func TestStaticCurveIsMaximumFlow(t *testing.T) {
	for seed := range uint64(60) {
		c := rackCase(rand.New(rand.NewPCG(seed, 8)))
		c.cluster.NodeOf = append(c.cluster.NodeOf, 2, 0)
		got, ranks := c.static(t, assign.Weights{Local: 1, Time: 1}), len(c.cluster.NodeOf)
		checkStatic(t, c, got)
		for quota := got.Curve[0].Most; quota <= len(c.of); quota++ {
			want := 0
			for _, point := range got.Curve {
				if point.Most <= quota {
					want = point.Local
				}
			}
			c.strict = contiguous(t, slices.Repeat([]int32{int32(quota)}, ranks))
			if local := matching(c); local != want {
				t.Fatalf("seed %d: %d can be local with %d each, the curve says %d: %v", seed, local, quota, want, got.Curve)
			}
		}
	}
}

// The curve begins with equal shares, and what is local then is what a plan of equal
// shares has.
func TestStaticBeginsWithEqualShares(t *testing.T) {
	c := randomCase(16, 32, 2, 5, 6)
	got := c.static(t, assign.Weights{Local: 0, Time: 1})
	checkWhole(t, c, got.Division)
	_, local := c.cost(c.step(t))
	if want := (assign.Point{Local: local, Most: 32}); got.Curve[0] != want || got.Best != 0 {
		t.Errorf("begins with %v, want %v", got.Curve[0], want)
	}
}

// Of what is equally good the lowest rank, the shortest time.
func TestStaticTies(t *testing.T) {
	c := caseOf{cluster: assign.Cluster{Nodes: 2, NodeOf: []int32{0, 1, 1}}, holders: [][]int32{{}, {0}}, of: []int32{0, 0, 0, 0, 0}}
	if got := c.static(t, assign.Weights{Local: 1, Time: 1}); len(got.Of(0)) != 2 || len(got.Of(1)) != 2 || len(got.Of(2)) != 1 {
		t.Errorf("five chunks of three equal ranks: %v", ranks(got.Division))
	}
	c.of = []int32{1, 1, 1}
	for _, tt := range []struct {
		weights assign.Weights
		best    int
	}{{assign.Weights{}, 0}, {assign.Weights{Local: 1, Time: 0}, 2}, {assign.Weights{Local: 1, Time: 1}, 0}, {assign.Weights{Local: 2, Time: 1}, 2}, {assign.Weights{Local: 1, Time: 2}, 0}} {
		// 1, 2 or 3 of the chunks are local, in time 1, 2 or 3; by equal weights that is 4/3, 7/6, 4/3.
		if got := c.static(t, tt.weights); len(got.Curve) != 3 || got.Best != tt.best {
			t.Errorf("weights %v: point %d of %v, want %d", tt.weights, got.Best, got.Curve, tt.best)
		}
	}
}

func TestStaticDependsOnNothingElse(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 10))
		c := randomCase(6, 5, 2, seed, 11)
		c.strict = contiguous(t, slices.Repeat([]int32{5}, len(c.cluster.NodeOf)))
		weights := assign.Weights{Local: 1, Time: 1}
		want, got := c.static(t, weights), c.rename(r, r.Perm(c.cluster.Nodes)).static(t, weights)
		if !equal(got.Division, want.Division) || !slices.Equal(got.Curve, want.Curve) || got.Best != want.Best {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}
