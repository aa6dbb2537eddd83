package stall

import "time"

// A ring remembers what the totals of a job were, once a second, for a bit
// longer than the longest window. A second without an addition is missing: a window
// then begins as near as possible to where it should, and its length is returned
// with it.
type ring struct {
	at    [ringSize]time.Time
	was   [ringSize]Totals
	count int // added so far
}

const (
	ringSize = 72
	pace     = time.Second
)

func (r *ring) add(now time.Time, t Totals) {
	r.at[r.count%ringSize], r.was[r.count%ringSize] = now, t
	r.count++
}

// due reports whether it is time for another sample.
func (r *ring) due(now time.Time) bool {
	return now.Sub(r.at[(r.count-1)%ringSize]) >= pace
}

// near is the sample closest to a moment.
func (r *ring) near(then time.Time) (at time.Time, was Totals) {
	best := -1
	for i := range min(r.count, ringSize) {
		if best < 0 || r.at[i].Sub(then).Abs() < r.at[best].Sub(then).Abs() {
			best = i
		}
	}
	return r.at[best], r.was[best]
}
