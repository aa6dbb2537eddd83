package state

// MaxReturns is how many readers give a unit back before it is set aside.
// A node that reboots, a job that is killed and a program with an error
// in its first lines may follow one another.
const MaxReturns = 4

// A Suspect is a unit that readers gave back, and that none has finished since. It may
// be the cause of their end.
type Suspect struct {
	Unit int64
	By   []Return // each reader once, the first first
}

// Aside reports whether so many readers gave it back that none is given it any more. A
// reader that still has it may finish it.
func (r Suspect) Aside() bool { return isAside(r.By) }

func isAside(by []Return) bool { return len(by) >= MaxReturns }

// A Return says how a unit came back.
type Return struct {
	Reader string `json:"Worker"`
	Node   string
	Rank   uint64
	At     int64 // time of the cluster
	Cause  Cause
}

// A Cause is why a unit came back.
type Cause string

const (
	Closed  Cause = "closed"  // the reader closed the queue, or ended
	Down    Cause = "down"    // its node was seen down, or began anew
	Removal Cause = "removed" // its node was taken out of the cluster
)
