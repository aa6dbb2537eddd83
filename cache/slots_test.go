package cache

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever is taken and given back in whatever order, no page is taken twice, and
// there is room as long as there is a block to divide.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const maxBlocks = 6
		s := newSlots(maxBlocks)
		taken := make(map[uint32]uint32) // pages by the first of them
		var order []uint32
		r.Repeat(map[string]func(*rapid.T){
			"take": func(r *rapid.T) {
				n := rapid.Uint32Range(1, slotBytes/4096).Draw(r, "pages")
				for range rapid.IntRange(1, 300).Draw(r, "times") {
					first, ok := s.take(n)
					if !ok {
						break
					}
					taken[first] = n
					order = append(order, first)
				}
			},
			"give": func(r *rapid.T) {
				for range rapid.IntRange(0, 400).Draw(r, "times") {
					if len(order) == 0 {
						return
					}
					i := rapid.IntRange(0, len(order)-1).Draw(r, "which")
					s.give(order[i])
					delete(taken, order[i])
					order[i] = order[len(order)-1]
					order = order[:len(order)-1]
				}
			},
			"": func(r *rapid.T) {
				pages := make(map[uint32]bool)
				for first, n := range taken {
					for p := range n {
						if pages[first+p] || first+p >= maxBlocks*blockPages || first/blockPages != (first+p)/blockPages {
							r.Fatalf("page %d of a run of %d", first+p, n)
						}
						pages[first+p] = true
					}
				}
				if len(taken) == 0 && len(s.empty) != len(s.blocks) {
					r.Fatalf("%d blocks of %d are empty, and nothing is taken", len(s.empty), len(s.blocks))
				}
			},
		})
	})
}
