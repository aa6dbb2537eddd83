package order_test

import (
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A reader of whole blocks that reads all a window needs when the window
// begins holds at most window+block-1 records.
func TestWindowBoundsWhatAReaderHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(3, 20_000).Draw(t, "n")
		window := rapid.Uint64Range(2, n-1).Draw(t, "window")
		seed, epoch := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch")
		o := order.New(meta.Order{Kind: meta.OrderWindow, Window: window}, n, seed, epoch)
		first, block := o.Blocks()
		if block != max(1, window/16) {
			t.Fatalf("blocks of %d", block)
		}
		blockOf := func(record uint64) uint64 { return (record + n - first) % n / block }
		begun := make(map[uint64]bool)
		var read uint64
		for start := uint64(0); start < n; start += window {
			for p := start; p < min(start+window, n); p++ {
				if b := blockOf(o.At(p)); !begun[b] {
					begun[b] = true
					read += min(block, n-b*block)
				}
			}
			if held := read - start; held > window+block-1 {
				t.Fatalf("at position %d the reader holds %d records", start, held)
			}
		}
		if read != n {
			t.Fatalf("read %d records of %d", read, n)
		}
	})
}

// Were windows permuted alike, neighbours of the source that stand together
// in one would stand together at the same place of the next.
func TestWindowsOfAnEpochDoNotRepeat(t *testing.T) {
	const window, windows = 160, 2000
	o := order.New(meta.Order{Kind: meta.OrderWindow, Window: window}, window*windows, 3, 4)
	neighbours := func(p uint64) bool { return o.At(p)+1 == o.At(p+1) }
	var one, both float64
	for i := range uint64(windows - 1) {
		for j := range uint64(window - 1) {
			if p := i*window + j; neighbours(p) {
				one++
				if neighbours(p + window) {
					both++
				}
			}
		}
	}
	// Of 160 places, 144 hold a record whose successor is of the same block.
	if want := 0.9 * (windows - 1); one < 0.9*want || one > 1.1*want {
		t.Errorf("%v neighbours stand together, want about %v", one, want)
	}
	if want := one * one / (windows - 1) / window; both > 3*want {
		t.Errorf("%v neighbours stand as in the window before, want about %.0f", both, want)
	}
}

// No record is always at the edge of a block: the first block begins
// anywhere, as often in one quarter of the source as in another.
func TestBlocksTurnWithTheEpoch(t *testing.T) {
	const n, epochs = 1000, 4000
	var quarter [4]float64
	for epoch := range uint64(epochs) {
		first, _ := order.New(meta.Order{Kind: meta.OrderWindow, Window: 100}, n, 5, epoch).Blocks()
		quarter[first*4/n]++
	}
	if z := chiSquared(quarter[:], epochs/4, 3); z > alarm {
		t.Errorf("blocks begin in the quarters %v times: z = %.1f", quarter, z)
	}
}
