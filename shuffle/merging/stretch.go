package merging

import (
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/record"
)

// A stretch is a piece of a part, as much of it as a range of keys has.
type stretch struct {
	of   Column
	i    int
	keys record.Range
}

// piece is what was measured of it.
func (s stretch) piece() pieces.Piece { return s.of.Is().Each[s.i] }

// stretches are the pieces of a column, each a run.
func stretches(c Column) [][]stretch {
	all := make([][]stretch, len(c.Is().Each))
	for i := range all {
		all[i] = []stretch{{of: c, i: i}}
	}
	return all
}
