package cache

import (
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/ledger"
)

// Whatever is put into a heap, taken out of its middle or given another worth, the one worth
// least is on top, and each is where its place says.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		places, worths := make(map[uint32]*uint32), make(map[uint32]float64)
		h := heap{slot: func(id uint32) *uint32 { return places[id] }}
		next := uint32(0)
		push := func(worth float64) {
			next++
			places[next], worths[next] = new(uint32), worth
			h.push(next, worth)
		}
		worth := rapid.Float64Range(-4, 4)
		one := func(r *rapid.T) (id uint32) {
			if h.count == 0 {
				r.Skip("it is empty")
			}
			return h.id(rapid.Uint32Range(0, h.count-1).Draw(r, "place"))
		}
		r.Repeat(map[string]func(*rapid.T){
			"push": func(r *rapid.T) { push(worth.Draw(r, "worth")) },
			"push many": func(r *rapid.T) {
				by := worth.Draw(r, "by")
				for i := range rapid.IntRange(1, 2*ledger.Page).Draw(r, "count") {
					push(by * float64(i))
				}
			},
			"remove": func(r *rapid.T) {
				id := one(r)
				h.remove(*places[id])
				delete(places, id)
				delete(worths, id)
			},
			"remove many": func(r *rapid.T) {
				for range rapid.Uint32Range(0, h.count).Draw(r, "count") {
					id, _ := h.least()
					h.remove(0)
					delete(places, id)
					delete(worths, id)
				}
			},
			"fix": func(r *rapid.T) {
				id := one(r)
				worths[id] = worth.Draw(r, "worth")
				h.fix(*places[id], worths[id])
			},
			"": func(r *rapid.T) {
				if int(h.count) != len(worths) {
					r.Fatalf("%d are in it, want %d", h.count, len(worths))
				}
				if h.count == 0 {
					return
				}
				_, least := h.least()
				for id, worth := range worths {
					if at := *places[id]; at >= h.count || h.id(at) != id || h.worth(at) != worth || worth < least {
						r.Fatalf("%d of worth %v is at %d; the least is %v", id, worth, at, least)
					}
				}
			},
		})
	})
}
