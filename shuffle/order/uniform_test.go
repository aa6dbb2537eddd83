package order_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

// The tests of this file ask whether orders can be told from random
// permutations. Their keys are fixed, so they always give the same answer; had
// the keys been drawn afresh, each z would exceed alarm by chance once in
// 30,000 times.
const alarm = 4

// keys calls f for a square of consecutive seeds and epochs, as jobs use them.
func keys(side uint64, f func(seed, epoch uint64)) {
	for seed := range side {
		for epoch := range side {
			f(seed, epoch)
		}
	}
}

// chiSquared compares counts with one expectation and returns the excess in
// standard deviations (Wilson and Hilferty's approximation).
func chiSquared(counts []float64, want, freedom float64) (z float64) {
	var x float64
	for _, c := range counts {
		x += (c - want) * (c - want) / want
	}
	v := 2 / (9 * freedom)
	return (math.Cbrt(x/freedom) - 1 + v) / math.Sqrt(v)
}

func TestAllPermutationsAreEquallyLikely(t *testing.T) {
	tests := []struct {
		order string
		n     uint64
	}{
		{"full", 2}, {"full", 3}, {"full", 4}, {"full", 5}, {"full", 6},
		{"window:2", 4}, {"window:2", 5}, {"window:3", 5}, // blocks of one record
	}
	const side = 300
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/n=%d", tt.order, tt.n), func(t *testing.T) {
			kind := parse(t, tt.order)
			counts := make([]float64, factorial(tt.n))
			keys(side, func(seed, epoch uint64) {
				o := order.New(kind, tt.n, seed, epoch)
				counts[number(o, tt.n)]++
			})
			cells := float64(len(counts))
			if z := chiSquared(counts, side*side/cells, cells-1); z > alarm {
				t.Errorf("z = %.1f", z)
			}
		})
	}
}

func factorial(n uint64) uint64 {
	f := uint64(1)
	for i := uint64(2); i <= n; i++ {
		f *= i
	}
	return f
}

// number is the place of an order of n among all n!.
func number(o order.Order, n uint64) uint64 {
	var record [8]uint64
	for i := range n {
		record[i] = o.At(i)
	}
	var number uint64
	for i := range n {
		var smaller uint64
		for _, later := range record[i+1 : n] {
			if later < record[i] {
				smaller++
			}
		}
		number = number*(n-i) + smaller
	}
	return number
}

func TestARecordStandsAnywhere(t *testing.T) {
	tests := []struct {
		order   string
		n, side uint64
	}{
		{"full", 16, 100}, {"full", 1000, 40}, {"window:3", 16, 100}, {"window:100", 1000, 40},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/n=%d", tt.order, tt.n), func(t *testing.T) {
			kind := parse(t, tt.order)
			counts := make([]float64, tt.n*tt.n)
			keys(tt.side, func(seed, epoch uint64) {
				o := order.New(kind, tt.n, seed, epoch)
				for p := range tt.n {
					counts[p*tt.n+o.At(p)]++
				}
			})
			n := float64(tt.n)
			want := float64(tt.side*tt.side) / n
			if z := chiSquared(counts, want, n*(n-1)); z > alarm {
				t.Errorf("z = %.1f", z)
			}
		})
	}
}

// A network of too few rounds keeps two records apart by what their
// positions were apart, above all if these shared a digit.
func TestTwoRecordsStandApartAnyhow(t *testing.T) {
	const side = 200
	for _, n := range []uint64{7, 15, 16, 36, 100, 255, 256, 257, 400, 1000} {
		root := uint64(math.Ceil(math.Sqrt(float64(n))))
		for _, apart := range []uint64{1, 2, root - 1, root, root + 1, n / 2} {
			counts := make([]float64, n-1)
			keys(side, func(seed, epoch uint64) {
				o := order.New(meta.Order{Kind: meta.OrderFull}, n, seed, epoch)
				counts[(o.At(apart)+n-o.At(0))%n-1]++
			})
			cells := float64(n - 1)
			if z := chiSquared(counts, side*side/cells, cells-1); z > alarm {
				t.Errorf("n=%d, %d apart: z = %.1f", n, apart, z)
			}
		}
	}
}

// Four records at the corners of a grid, half a digit apart in both
// directions, are what a network of this kind keeps longest: it was seen at
// n = 16 after 12 rounds.
func TestGridsFallApart(t *testing.T) {
	tests := []struct {
		rows, columns uint64
		by            float64 // chance finds a grid again once in so many
	}{
		{4, 2, 70. / 2}, {4, 4, 1820. / 4}, {6, 6, 58905. / 9},
	}
	const side = 500
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%dx%d", tt.rows, tt.columns), func(t *testing.T) {
			n := tt.rows * tt.columns
			down, right := n/2, tt.columns/2
			var grids float64
			keys(side, func(seed, epoch uint64) {
				o := order.New(meta.Order{Kind: meta.OrderFull}, n, seed, epoch)
				a := []uint64{o.At(0), o.At(down), o.At(right), o.At(down + right)}
				slices.Sort(a)
				if a[1] == a[0]+right && a[2] == a[0]+down && a[3] == a[2]+right && a[0]%tt.columns < right {
					grids++
				}
			})
			want := side * side / tt.by
			if z := (grids - want) / math.Sqrt(want); math.Abs(z) > alarm {
				t.Errorf("%v grids, want about %.0f: z = %.1f", grids, want, z)
			}
		})
	}
}

// The orders of two keys, however alike the keys, have as much in common as
// two random permutations.
func TestKeysAreUnrelated(t *testing.T) {
	const n, side = 200, 25
	tests := []struct {
		name  string
		other func(seed, epoch uint64) (uint64, uint64)
	}{
		{"next seed", func(s, e uint64) (uint64, uint64) { return s + 1, e }},
		{"next epoch", func(s, e uint64) (uint64, uint64) { return s, e + 1 }},
		{"next of both", func(s, e uint64) (uint64, uint64) { return s + 1, e + 1 }},
		{"one up, one down", func(s, e uint64) (uint64, uint64) { return s + 1, e - 1 }},
		{"swapped", func(s, e uint64) (uint64, uint64) { return e, s }},
		{"top bit of seed", func(s, e uint64) (uint64, uint64) { return s ^ 1<<63, e }},
		{"top bit of epoch", func(s, e uint64) (uint64, uint64) { return s, e ^ 1<<63 }},
		{"negated", func(s, e uint64) (uint64, uint64) { return -s - 1, -e - 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var full, window likeness
			keys(side, func(seed, epoch uint64) {
				seed += 1 << 32 // so that no key is swapped with itself
				s, e := tt.other(seed, epoch)
				for kind, sum := range map[string]*likeness{"full": &full, "window:20": &window} {
					o := parse(t, kind)
					sum.add(order.New(o, n, seed, epoch), order.New(o, n, s, e), n)
				}
			})
			// By chance each is about normal, with a variance of 1 for each
			// pair of keys.
			const count = side * side
			for what, z := range map[string]float64{
				"full: records in the same place":   (full.same - count) / side,
				"full: pairs of neighbours":         (full.pairs - count*(n-1.)/n) / side,
				"full: rank correlation":            full.rank * math.Sqrt(n-1) / side,
				"window: records in the same place": (window.same - count) / side,
			} {
				if math.Abs(z) > alarm {
					t.Errorf("%s in common: z = %.1f", what, z)
				}
			}
		})
	}
}

// A likeness is what orders have in common: the records that stand in the
// same place, the pairs that stand next to one another in both, and Spearman's
// rank correlation.
type likeness struct{ same, pairs, rank float64 }

func (c *likeness) add(a, b order.Order, n uint64) {
	var square float64
	last := n
	for p := range n {
		at := b.Position(a.At(p))
		if at == p {
			c.same++
		}
		if at == last+1 {
			c.pairs++
		}
		last = at
		d := float64(at) - float64(p)
		square += d * d
	}
	m := float64(n)
	c.rank += 1 - 6*square/(m*(m*m-1))
}
