package fair

// A Standing is how a job stands among those that share memory.
type Standing struct {
	Held  int64 // bytes of memory that may make way
	Due   int64 // its 1/n of all of those
	Needs int64 // for what is made ready ahead of its readers
	Late  bool  // it waits for what it lacks
}

// A Claim is who has a right to what a job holds: what is claimed goes first, and
// what is kept only if an open waits and there is no other way.
type Claim uint8

const (
	Claimed Claim = iota
	Usual
	Kept
)

// On is the claim on what one job holds, of another that brings something.
func On(giver, taker Standing) Claim {
	short := taker.Late || taker.Held < taker.Needs
	switch {
	case giver.Late && (!short || giver.Held <= giver.Due):
		return Kept
	case giver.Late && taker.Held < taker.Due, !giver.Late && taker.Late && giver.Held > giver.Needs:
		return Claimed
	}
	return Usual
}
