package order_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

// entropy is that, in bits, of the distances |at(i+1)-at(i)| of the n-1
// neighbours of an order; each distance counts by itself, without bins. It is
// 0 if all distances are equal.
func entropy(n uint64, at func(uint64) uint64) float64 {
	times := make([]uint32, n)
	last := at(0)
	for i := uint64(1); i < n; i++ {
		next := at(i)
		times[max(next, last)-min(next, last)]++
		last = next
	}
	var sum float64
	for _, c := range times {
		sum += clog(float64(c))
	}
	m := float64(n - 1)
	return math.Log2(m) - sum/m
}

// fullEntropy is the entropy to expect of a random permutation. The distance
// d comes 2(n-d)/n times on the mean, about as a Poisson variable does, so
// the mean of c*log2(c) is summed over each of these.
func fullEntropy(n uint64) float64 {
	var sum float64
	for d := uint64(1); d < n; d++ {
		mean := 2 * float64(n-d) / float64(n)
		p := math.Exp(-mean)
		for c := range 24 {
			sum += p * clogTable[c]
			p *= mean / float64(c+1)
		}
	}
	m := float64(n - 1)
	return math.Log2(m) - sum/m
}

var clogTable = func() (table [24]float64) {
	for c := range table {
		table[c] = clog(float64(c))
	}
	return table
}()

func clog(c float64) float64 {
	if c < 2 {
		return 0
	}
	return c * math.Log2(c)
}

// together is the share of records that stand in the same batch as the
// record after them in the source.
func together(n, batch uint64, o order.Order) float64 {
	var same uint64
	last := o.Position(0) / batch
	for record := uint64(1); record < n; record++ {
		next := o.Position(record) / batch
		if next == last {
			same++
		}
		last = next
	}
	return float64(same) / float64(n-1)
}

func TestEntropy(t *testing.T) {
	const n = 100_000
	full := fullEntropy(n)
	tests := []struct {
		order     string
		low, high float64 // relative to a full order
	}{
		{"none", 0, 0},
		{"full", 0.999, 1.001},
		{"window:10", 0.999, 1.001},
		{"window:1000", 0.96, 1},
		{"window:10000", 0.97, 1},
	}
	for _, tt := range tests {
		t.Run(tt.order, func(t *testing.T) {
			for epoch := range uint64(5) {
				o := order.New(parse(t, tt.order), n, 1, epoch)
				if e := entropy(n, o.At) / full; e < tt.low || e > tt.high {
					t.Errorf("epoch %d: entropy %.5f of a full order's, want %v to %v", epoch, e, tt.low, tt.high)
				}
			}
		})
	}
}

// TestQualityTable holds the table of docs/order.md to what orders do.
func TestQualityTable(t *testing.T) {
	const path, begin, end = "../../docs/order.md", "<!-- table -->\n", "<!-- end of table -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no table between %q and %q", path, begin, end)
	}
	checkGolden(t, path, before+begin+qualityTable(t)+end+after)
}

func qualityTable(t *testing.T) string {
	const n, batch = 1_000_000, 256
	var b strings.Builder
	fmt.Fprintf(&b, "| order | records held | records read at a time | entropy, bits | of full | neighbours in one batch of %d |\n", batch)
	fmt.Fprintln(&b, "|---|--:|--:|--:|--:|--:|")
	for _, name := range []string{"none", "window:100", "window:1000", "window:10000", "window:100000", "full"} {
		kind := parse(t, name)
		o := order.New(kind, n, 0, 0)
		held, run := "1", "all in turn"
		switch kind.Kind {
		case meta.OrderWindow:
			block := kind.Window / 16
			held, run = fmt.Sprint(kind.Window+block-1), fmt.Sprint(block)
		case meta.OrderFull:
			held, run = "1, at random", "1"
		}
		e := entropy(n, o.At)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %.2f | %.3f | %.2f %% |\n",
			name, held, run, e, e/fullEntropy(n), 100*together(n, batch, o))
	}
	return b.String()
}
