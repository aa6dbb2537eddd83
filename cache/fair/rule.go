package fair

// A Standing compares a job with the others that share memory.
type Standing struct {
	Held  int64 // bytes of memory that may make way
	Due   int64 // its 1/n of all such bytes, of n jobs
	Needs int64 // for what is made ready ahead of its readers
	Late  bool  // it waits for what it lacks
}

// A Priority says when batches of one job are evicted for another: First before all
// others, Last only if an open waits and nothing else can be evicted.
type Priority uint8

const (
	First Priority = iota
	Usual
	Last
)

// Of is the priority by which the giver's batches are evicted for the taker, a job that
// brings a batch.
func Of(giver, taker Standing) Priority {
	lacks := taker.Late || taker.Held < taker.Needs
	switch {
	case giver.Late && (!lacks || giver.Held <= giver.Due):
		return Last
	case giver.Late && taker.Held < taker.Due, !giver.Late && taker.Late && giver.Held > giver.Needs:
		return First
	}
	return Usual
}
