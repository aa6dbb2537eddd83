package views

import (
	"slices"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/shuffle/plan"
)

// Chunks are fetched ahead by their owner alone, and only if it is known for whom; as
// the cache knows them each is a step, wherever the ranks are.
func TestChunksAhead(t *testing.T) {
	k := catalogtest.New(t, 3)
	k.Up()
	n := viewsOf(t, k, "ranks=4,batch=2", 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"})
	d := n.dataset(t)
	b, err := n.newBatches(d.Default, d.Version, []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 2}, {Host: "c", Ranks: 1}})
	if err != nil || b.slabs == nil {
		t.Fatalf("batches are made of chunks: %v, %v", err == nil && b.slabs != nil, err)
	}
	unknown := newChunkSlabs(d.Version, nil)
	for _, host := range []string{"a", "b", "c"} {
		k.Owners.Self, _ = k.Owners.At(host)
		for chunk := range 4 {
			if got := b.slabs.Ahead(0, uint64(chunk)); got != (b.Chunks.Owner(chunk) == k.Owners.Self) {
				t.Errorf("chunk %d is fetched ahead on %s: %v", chunk, host, got)
			}
			if unknown.Ahead(0, uint64(chunk)) {
				t.Errorf("chunk %d is fetched ahead for no known rank", chunk)
			}
		}
	}
	if chunks, err := b.slabs.AppendChunks(nil, 0, 2); err != nil || !slices.Equal(chunks, []int{2}) {
		t.Errorf("step 2 is the chunks %v, %v", chunks, err)
	}
}
