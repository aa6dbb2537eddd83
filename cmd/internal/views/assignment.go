package views

import "rankfs/shuffle/plan"

// An assignment is which rank reads what, and on which host. It never changes.
type assignment struct {
	*Batches
	host    string      // this one
	seats   []plan.Seat // of the ranks; nil: all are here
	settled bool
}

// hostOf is where a rank runs, as far as the assignment knows.
func (a *assignment) hostOf(rank uint64) string {
	for _, s := range a.seats {
		if rank < s.Ranks {
			return s.Host
		}
		rank -= s.Ranks
	}
	return a.host
}
