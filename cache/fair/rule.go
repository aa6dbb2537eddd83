package fair

// A Standing is how a job stands among those that share memory.
type Standing struct {
	Held int64   // bytes of memory that may make way
	Due  int64   // and its 1/n of all of those
	Owed bool    // it waits more than it would with 1/n for itself
	Late bool    // it waits for what it lacks
	Gain float64 // seconds less to wait, in a second, with each byte more, if it is late
}

// Keeps reports whether nothing of a job may make way for others.
func (s Standing) Keeps() bool { return s.Owed && s.Held <= s.Due }

// Claims reports whether a job is to have more of what others hold beyond their
// due, whatever that is worth.
func (s Standing) Claims() bool { return s.Owed && s.Held < s.Due }

// gains reports whether all wait clearly less with a byte for s instead of o.
func (s Standing) gains(o Standing) bool {
	const clearly = 1.25 // gains are measured
	return s.Late && s.Gain > clearly*o.Gain
}

// A Class orders who gives: the lowest first, and within one what is worth least.
type Class uint8

const (
	First Class = iota
	Second
	Third
	Fourth
	Last // only if an open waits and there is no other way
)

// Give is the class of what one job holds, as room for what another brings, which
// an open waits for or a reader will. They may be the same job.
func Give(giver, taker Standing, own, waits bool) Class {
	switch {
	case own && (waits || giver.Late || taker.Claims()):
		return Third
	case own:
		return First
	case giver.Keeps():
		return Last
	case !giver.Late && (taker.Late || taker.Claims() || !waits):
		return First
	case giver.Held > giver.Due && (taker.Claims() || taker.gains(giver)):
		return Second
	}
	return Fourth
}
