package node

import (
	"testing"

	"rankfs/cache"
	"rankfs/shuffle/plan"
)

// Batches that are chunks have the chunk's name in every epoch and order, and
// are found by it where they are; others have their own.
func TestKeys(t *testing.T) {
	m := memberOf(t, 2)
	chunks := [][]string{{"a"}, {"b"}, {"a", "b"}, {"a"}, {"b"}}
	for _, view := range []string{
		"ranks=2,batch=chunk", "ranks=2,batch=chunk,order=full,seed=3", "ranks=2,batch=chunk,order=full,seed=3,epoch=1",
		"ranks=2,batch=chunk,order=full,seed=3,assign=strict", "ranks=2,batch=2", "ranks=2,batch=2,order=full,seed=3",
	} {
		n := planner(t, m, view, 4, chunks...)
		d := n.catalog.mu.byName["d"]
		p := newFiller(d.view, d.content, n.sizes)
		if err := p.place([]plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}}); err != nil {
			t.Fatal(err)
		}
		byChunk := p.chunks != [16]byte{}
		seen := make(map[cache.Key]bool)
		for step := range p.Steps() {
			for rank := range p.cut.Ranks {
				if p.Records(rank, step) == 0 {
					continue
				}
				k := p.Key(rank, step)
				seen[k] = true
				if r, s, ok := p.Find(k); !ok || r != rank || s != step {
					t.Errorf("%s: batch %d of rank %d is found as %d of %d: %v", view, step, rank, s, r, ok)
				}
				if own := (cache.Key{Plan: p.id, Rank: rank, Step: step}); (k == own) == byChunk {
					t.Errorf("%s: batch %d of rank %d has the name %v", view, step, rank, k)
				}
			}
		}
		if byChunk && len(seen) != len(chunks) {
			t.Errorf("%s: %d names for %d chunks", view, len(seen), len(chunks))
		}
		if _, _, ok := p.Find(cache.Key{Plan: p.chunks, Step: 99}); ok && byChunk {
			t.Errorf("%s: a chunk is found that there is not", view)
		}
	}
}
