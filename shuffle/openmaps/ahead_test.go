package openmaps

import (
	"math/rand/v2"
	"testing"
)

// For a reader that takes parts in order a disk is asked for all of a map once, by few requests;
// also if there are several readers, of which some are slower. What was asked for lies ahead by a
// bound.
func TestAhead(t *testing.T) {
	const piece, parts = 8 << 10, 512
	for readers := 1; readers <= 4; readers++ {
		var a ahead
		var asked, requests int64
		r := rand.New(rand.NewPCG(1, uint64(readers)))
		for first := 0; first < parts; first += readers {
			for _, i := range r.Perm(readers) {
				begin := int64(first+i) * piece
				if begin >= parts*piece {
					continue
				}
				from, to := a.next(begin, begin+piece, parts*piece)
				if from < to {
					asked, requests = asked+to-from, requests+1
				}
				if to > parts*piece || to > begin+piece+maxAhead {
					t.Fatalf("%d readers: byte %d to %d for a piece from %d", readers, from, to, begin)
				}
			}
		}
		if asked < parts*piece || asked > parts*piece+int64(readers)*gapPieces*piece || requests > parts/8 {
			t.Errorf("%d readers: %d of %d bytes by %d requests", readers, asked, parts*piece, requests)
		}
	}
}

// Pieces that do not follow each other are all that is asked for.
func TestNothingAhead(t *testing.T) {
	const piece = 8 << 10
	var a ahead
	for i := range int64(100) {
		begin := i * 100 * piece
		if from, to := a.next(begin, begin+piece, 1<<30); from != begin || to != begin+piece {
			t.Fatalf("byte %d to %d for a piece from %d", from, to, begin)
		}
	}
}
