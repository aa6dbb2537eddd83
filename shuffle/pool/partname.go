package pool

import "rankfs/meta"

// A partName tells a part from all others there ever were.
type partName [7]uint64

// Name is the part's.
func (p *Part) Name() partName {
	name := p.name()
	if p.Offsets {
		name[3] = 2
	}
	return name
}

// name is the name of the part which is these pieces. The maps of a sealed stage are those that they
// are, so that the first, the last and how many there are say which.
func (p *column) name() partName {
	kind, first, last, n := uint64(0), uint64(0), uint64(0), p.Maps.Len()
	if p.Whole {
		kind = 1
	}
	if n > 0 {
		first, last = p.Maps.At(0).Map, p.Maps.At(n-1).Map
	}
	return partName{p.Stage, p.Generation, p.Number, kind, first, last, uint64(n)}
}

// withPieces names the part whose pieces are to be known: that of offsets, if they are these of
// pieces, is the part itself.
func (p *Part) withPieces() partName {
	if p.merged.Records.Kind == meta.NoRecords {
		return p.name()
	}
	return p.Name()
}
