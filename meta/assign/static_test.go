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
func staticCase(r *rand.Rand) (caseOf, []uint32, assign.Weights) {
	c := caseOf{cluster: assign.Cluster{Nodes: 3}}
	var speeds []uint32
	for range 1 + r.IntN(3) {
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(r.IntN(3)))
		speeds = append(speeds, uint32(r.IntN(8)))
	}
	speeds[r.IntN(len(speeds))] = uint32(1 + r.IntN(8))
	for chunk := range r.IntN(8) {
		var set []int32
		for range r.IntN(3) {
			set = append(set, int32(r.IntN(3)))
		}
		c.holders, c.of = append(c.holders, set), append(c.of, int32(chunk))
	}
	return c, speeds, assign.Weights{Local: uint32(r.IntN(9)), Time: uint32(r.IntN(4))}
}

func (c caseOf) static(t fataler, speeds []uint32, w assign.Weights) assign.Static {
	t.Helper()
	s, err := c.planner(t).Static(c.of, speeds, w)
	if err != nil {
		t.Fatalf("static: %v", err)
	}
	return s
}

// outcome is what one division comes to; ok is false if a rank of speed 0
// reads something.
func (c caseOf) outcome(readers []int, speeds []uint32) (local int, time *big.Rat, ok bool) {
	counts := make([]int64, len(speeds))
	for chunk, rank := range readers {
		counts[rank]++
		if c.held(chunk, int(c.cluster.NodeOf[rank])) {
			local++
		}
	}
	time = new(big.Rat)
	for rank, n := range counts {
		if n > 0 && speeds[rank] == 0 {
			return 0, nil, false
		}
		if n > 0 && time.Cmp(big.NewRat(n, int64(speeds[rank]))) < 0 {
			time = big.NewRat(n, int64(speeds[rank]))
		}
	}
	return local, time, true
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

func number(r assign.Ratio) *big.Rat { return big.NewRat(int64(r.Num), int64(r.Den)) }

// Every division is tried: the curve is exactly those that none beats, and the
// best is as good as any.
func TestStaticAgainstBruteForce(t *testing.T) {
	longer := 0
	for seed := range uint64(600) {
		c, speeds, weights := staticCase(rand.New(rand.NewPCG(seed, 7)))
		got := c.static(t, speeds, weights)
		shortest := make(map[int]*big.Rat) // by how many are local
		all(len(c.of), len(speeds), func(readers []int) {
			if local, time, ok := c.outcome(readers, speeds); ok && (shortest[local] == nil || time.Cmp(shortest[local]) < 0) {
				shortest[local] = time
			}
		})
		want := pareto(shortest, len(c.of))
		if !slices.Equal(got.Curve, want) {
			t.Fatalf("seed %d: curve %v, want %v: %v, speeds %v", seed, got.Curve, want, c, speeds)
		}
		if len(c.of) > 0 {
			best := new(big.Rat)
			for local, time := range shortest {
				if score := score(local, len(c.of), number(want[0].Time), time, weights); score.Cmp(best) > 0 {
					best = score
				}
			}
			if score := score(got.Curve[got.Best].Local, len(c.of), number(want[0].Time), number(got.Curve[got.Best].Time), weights); score.Cmp(best) != 0 {
				t.Fatalf("seed %d: scores %v, could score %v", seed, score, best)
			}
		}
		checkStatic(t, c, got, speeds)
		longer += min(got.Best, 1)
	}
	if longer < 30 {
		t.Errorf("locality was worth time in %d cases: these test too little", longer)
	}
}

func pareto(shortest map[int]*big.Rat, chunks int) (curve []assign.Point) {
	var best *big.Rat
	for local := chunks; local >= 0; local-- {
		if time := shortest[local]; time != nil && (best == nil || time.Cmp(best) < 0) {
			best = time
			curve = append(curve, assign.Point{Local: local, Time: assign.Ratio{Num: time.Num().Uint64(), Den: time.Denom().Uint64()}})
		}
	}
	slices.Reverse(curve)
	return curve
}

func score(local, chunks int, shortest, time *big.Rat, w assign.Weights) *big.Rat {
	speed := new(big.Rat).Quo(shortest, time)
	speed.Mul(speed, big.NewRat(int64(w.Time), 1))
	return speed.Add(speed, big.NewRat(int64(w.Local)*int64(local), int64(chunks)))
}

// checkStatic checks that the division is whole, and as local and as short as
// the point of the curve says.
func checkStatic(t fataler, c caseOf, s assign.Static, speeds []uint32) {
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
	local, time, ok := c.outcome(readers, speeds)
	if want := s.Curve[s.Best]; !ok || local != want.Local || time.Cmp(number(want.Time)) != 0 {
		t.Fatalf("%d local in time %v, should be %v: %v, speeds %v, %v", local, time, want, c, speeds, ranks(s.Division))
	}
}

// Too large to try all: for each time that matters, the curve says what a
// maximum flow says.
func TestStaticCurveIsMaximumFlow(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 8))
		c := rackCase(r)
		c.cluster.NodeOf = append(c.cluster.NodeOf, 2, 0)
		var speeds []uint32
		for range c.cluster.NodeOf {
			speeds = append(speeds, uint32(1+r.IntN(9)))
		}
		got := c.static(t, speeds, assign.Weights{Local: 1, Time: 1})
		checkStatic(t, c, got, speeds)
		for _, s := range speeds {
			for k := range len(c.of) + 1 {
				time := assign.Ratio{Num: uint64(k), Den: uint64(s)}
				counts := make([]int32, len(speeds))
				sum := 0
				for rank, s := range speeds {
					counts[rank] = int32(time.Num * uint64(s) / time.Den)
					sum += int(counts[rank])
				}
				if got.Curve[0].Time.Compare(time) > 0 {
					if sum >= len(c.of) {
						t.Fatalf("seed %d: done by %v, before the shortest time %v", seed, time, got.Curve[0].Time)
					}
					continue
				}
				want := 0
				for _, point := range got.Curve {
					if point.Time.Compare(time) <= 0 {
						want = point.Local
					}
				}
				c.strict = contiguous(t, counts)
				if local := matching(c); local != want {
					t.Fatalf("seed %d: %d can be local by %v, the curve says %d: %v", seed, local, time, want, got.Curve)
				}
			}
		}
	}
}

// Equal speeds and as many chunks each: the shortest time is that of equal
// shares, and what is local then is what a plan of equal shares has.
func TestStaticOfEqualSpeeds(t *testing.T) {
	c := randomCase(16, 32, 2, 5, 6)
	speeds := make([]uint32, 16)
	for rank := range speeds {
		speeds[rank] = 1000
	}
	got := c.static(t, speeds, assign.Weights{Local: 0, Time: 1})
	checkWhole(t, c, got.Division)
	_, local := c.cost(c.step(t))
	if want := (assign.Point{Local: local, Time: assign.Ratio{Num: 4, Den: 125}}); got.Curve[0] != want || got.Best != 0 {
		t.Errorf("begins with %v, want %v", got.Curve[0], want)
	}
}

// Of what is equally good the lowest rank, the shortest time.
func TestStaticTies(t *testing.T) {
	c := caseOf{cluster: assign.Cluster{Nodes: 2, NodeOf: []int32{0, 1, 1}}, holders: [][]int32{{}, {0}}, of: []int32{0, 0, 0, 0, 0}}
	if got := c.static(t, []uint32{7, 7, 7}, assign.Weights{Local: 1, Time: 1}); len(got.Of(0)) != 2 || len(got.Of(1)) != 2 || len(got.Of(2)) != 1 {
		t.Errorf("five chunks of three equal ranks: %v", ranks(got.Division))
	}
	c.of = []int32{1, 1, 1}
	for _, tt := range []struct {
		weights assign.Weights
		best    int
	}{{assign.Weights{}, 0}, {assign.Weights{Local: 1, Time: 0}, 2}, {assign.Weights{Local: 1, Time: 1}, 0}, {assign.Weights{Local: 2, Time: 1}, 2}, {assign.Weights{Local: 1, Time: 2}, 0}} {
		// 1, 2 or 3 of the chunks are local, in time 1, 2 or 3; by equal weights that is 4/3, 7/6, 4/3.
		if got := c.static(t, []uint32{1, 1, 1}, tt.weights); len(got.Curve) != 3 || got.Best != tt.best {
			t.Errorf("weights %v: point %d of %v, want %d", tt.weights, got.Best, got.Curve, tt.best)
		}
	}
}

func TestStaticDependsOnNothingElse(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 10))
		c := randomCase(6, 5, 2, seed, 11)
		var speeds []uint32
		var counts []int32
		for range c.cluster.NodeOf {
			speeds = append(speeds, uint32(1+r.IntN(9)))
			counts = append(counts, 5)
		}
		c.strict = contiguous(t, counts)
		weights := assign.Weights{Local: 1, Time: 1}
		want, got := c.static(t, speeds, weights), c.rename(r, r.Perm(c.cluster.Nodes)).static(t, speeds, weights)
		if !equal(got.Division, want.Division) || !slices.Equal(got.Curve, want.Curve) || got.Best != want.Best {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}
