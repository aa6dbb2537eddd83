package gathering

import (
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/turns"
)

// A Request asks a node for what maps have of a part; or, if Whole, for all of one.
type Request struct {
	Terms
	Part  uint64
	Whole bool
	Maps  []state.Commit
	Hurry bool // others can be asked
}

// Terms are the terms on which pieces of a stage come: as of which generation, how they are packed
// on the way, and what the work counts for.
type Terms struct {
	Stage, Generation uint64
	Packed            meta.Compression
	Party             turns.Party
}

// TermsOf are the terms of a stage as it is.
func TermsOf(is state.PoolStage) Terms {
	return Terms{is.Number, is.Generation, is.Spec.Packed, turns.PartyOf(is)}
}
