package heap_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta/heap"
)

type number int

func (n number) Before(o number) bool { return n < o }

// Whatever is put in and taken out in between, what comes out is the least.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap.Heap[number]
		var all []number
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "first") {
			all = append(all, number(n))
		}
		h = slices.Clone(all)
		h.Init()
		for _, n := range rapid.SliceOf(rapid.IntRange(-40, 20)).Draw(t, "then") {
			slices.Sort(all)
			switch {
			case n >= 0 || len(all) == 0:
				h.Push(number(n))
				all = append(all, number(n))
			case n > -20:
				if got := h.Pop(); got != all[0] {
					t.Fatalf("got %d of %v", got, all)
				}
				all = all[1:]
			default:
				h[0] += number(-n)
				h.Fix()
				all[0] += number(-n)
			}
		}
		slices.Sort(all)
		for i := range all {
			if got := h.Pop(); got != all[i] {
				t.Fatalf("got %d, want %d", got, all[i])
			}
		}
		if len(h) != 0 {
			t.Fatalf("%d are left", len(h))
		}
	})
}
