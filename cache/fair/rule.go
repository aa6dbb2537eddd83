package fair

// A Standing is how a job stands among those that share memory.
type Standing struct {
	Held  int64 // bytes of memory that may make way
	Due   int64 // its 1/n of all such bytes, of n jobs
	Needs int64 // for what is made ready ahead of its readers
	Late  bool  // it waits for what it lacks
}

// A Claim is how far one job may take another's batches: those Claimed are evicted
// first, those Kept only if an open waits and nothing else can be evicted.
type Claim uint8

const (
	Claimed Claim = iota
	Usual
	Kept
)

// On is the claim of the taker, a job that brings a batch, on the giver's batches.
func On(giver, taker Standing) Claim {
	lacks := taker.Late || taker.Held < taker.Needs
	switch {
	case giver.Late && (!lacks || giver.Held <= giver.Due):
		return Kept
	case giver.Late && taker.Held < taker.Due, !giver.Late && taker.Late && giver.Held > giver.Needs:
		return Claimed
	}
	return Usual
}
