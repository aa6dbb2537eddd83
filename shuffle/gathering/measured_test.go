package gathering

import (
	"testing"

	"rankfs/shuffle/pieces"
)

// The part that was measured last is remembered however many pieces it has, as its reader asks
// again at once; those before it as far as there is room.
func TestMeasured(t *testing.T) {
	var m Measured
	name := func(part uint64) Name { return Name{2: part} }
	remembered := func(part uint64) bool { _, ok := m.Get(name(part)); return ok }
	put := func(part uint64, n int) { m.Put(name(part), Measurement{Pieces: make([]pieces.Piece, n)}) }

	put(0, maxPieces/2)
	put(1, maxPieces/2)
	if !remembered(0) || !remembered(1) {
		t.Error("two parts that there is room for are not remembered")
	}
	for part := range uint64(3) {
		put(2+part, maxPieces+1)
		if !remembered(2 + part) {
			t.Errorf("large part %d is measured at each look", part)
		}
		if len(m.of) != 1 || len(m.in) != 1 || m.n != maxPieces+1 {
			t.Errorf("beside it others are remembered: %d of %d pieces", len(m.of), m.n)
		}
	}
	put(5, 1)
	if !remembered(5) || remembered(4) {
		t.Error("a large part takes the room of the next one")
	}
}
