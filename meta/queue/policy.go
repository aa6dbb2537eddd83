package queue

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// A Policy says by what rule free units go to readers.
type Policy uint8

const (
	PolicyFlow        Policy = iota // a max-flow of units to nodes, scheduled anew as speeds show
	PolicyProbability               // Algorithm 1 of DL-MPI
)

func (p Policy) String() string {
	return [...]string{"flow", "probability"}[p]
}

// Policies are the names of all, the default first.
func Policies() (names []string) {
	for p := PolicyFlow; p <= PolicyProbability; p++ {
		names = append(names, p.String())
	}
	return names
}

// ParsePolicy reads flow or probability.
func ParsePolicy(s string) (Policy, error) {
	for p := PolicyFlow; p <= PolicyProbability; p++ {
		if s == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("policy %q %w: use flow or probability", s, meta.ErrInvalid)
}

// A chooser is a policy at work on freeUnits. It hears of every unit that stops
// being free or becomes free again, right after they did.
type chooser interface {
	// pick names a free unit for w. If w had better wait it says until when.
	pick(now time.Duration, w *reader) (unit int, until time.Duration, ok bool)
	took(unit, node int)
	back(unit int)
	// left is told that a reader is gone, when its units are back.
	left()
	// schedules counts how often those that wait could have been given something.
	schedules() uint64
}
