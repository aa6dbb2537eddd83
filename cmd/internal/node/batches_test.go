package node

import (
	"slices"
	"testing"
)

// Chunks are fetched ahead by their owner alone, and only if it is known for whom; as
// the cache knows them each is a step, wherever the ranks are.
func TestChunksAhead(t *testing.T) {
	n, d, seats := sharers(t)
	p := batchesOf(d.Default, d.Version, n.sizes)
	if err := p.Place(seats); err != nil {
		t.Fatal(err)
	}
	known, unknown := newChunks(nil, d.Version, p.Plan), newChunks(nil, d.Version, nil)
	for _, host := range []string{"a", "b", "c"} {
		n.member.owners.Self, _ = n.member.owners.At(host)
		for chunk := range 4 {
			if got := known.Slabs.(*chunkSlabs).Ahead(0, uint64(chunk)); got != (known.Owner(chunk) == n.member.owners.Self) {
				t.Errorf("chunk %d is fetched ahead on %s: %v", chunk, host, got)
			}
			if unknown.Slabs.(*chunkSlabs).Ahead(0, uint64(chunk)) {
				t.Errorf("chunk %d is fetched ahead for no known rank", chunk)
			}
		}
	}
	if chunks, err := known.Slabs.(*chunkSlabs).AppendChunks(nil, 0, 2); err != nil || !slices.Equal(chunks, []int{2}) {
		t.Errorf("step 2 is the chunks %v, %v", chunks, err)
	}
}
