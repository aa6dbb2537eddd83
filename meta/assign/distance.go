package assign

// A Distance says how far a position is from the rank that reads it.
type Distance uint8

const (
	Local  Distance = iota // its node holds it
	Rack                   // another node of its rack does
	Remote                 // no node of its rack does, as far as is known
)
