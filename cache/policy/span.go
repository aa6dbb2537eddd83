package policy

import (
	"cmp"
	"slices"

	"rankfs/meta/heap"
)

// A span is an item kept from one use to the next, or from now to the first.
// Times are numbers of uses; 0 is now. Kept over a span an item saves the wait
// of the use that ends it, and needs memory at all times from from to before to.
type span struct {
	item     int32
	from, to int32
	level    Level // that was chosen, or Source
}

// An ending is a span in a heap; the one that ends last comes first.
type ending struct{ *span }

func (e ending) Before(o ending) bool { return e.to > o.to }

// belady chooses as many spans as there can be with so many slabs: of those
// that overlap too much, the one that ends last is dropped, even if it has just
// begun (Faigle and Nawijn 1995; Carlisle and Lloyd 1995).
func belady(spans []span, times int, slabs int64) {
	order := byStart(spans)
	ends := make([]int32, times)
	for _, k := range order {
		ends[spans[k].to] = k + 1
	}
	var open heap.Heap[ending]
	kept, now := int64(0), int32(0)
	for _, k := range order {
		s := &spans[k]
		for ; now < s.from; now++ {
			if e := ends[now+1]; e > 0 && spans[e-1].level == RAM {
				kept--
			}
		}
		s.level = RAM
		open.Push(ending{s})
		if kept++; kept > slabs {
			open.Pop().level = Source
			kept--
		}
	}
}

func byStart(spans []span) []int32 {
	order := make([]int32, len(spans))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(spans[a].from, spans[b].from) })
	return order
}
