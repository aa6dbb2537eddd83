package queue

// A Scheduler is one queue's. It is not safe for concurrent use.
//
// A unit is free, or readers have it, or it is done. A reader has a unit by a lease
// that the group agreed on, or by an offer that it may yet agree on. Offers bind
// only this scheduler, so that it does not advise two readers alike. Of the free
// units those that were returned wait beside the free ones until there are none.
type Scheduler struct {
	units   *freeUnits
	readers *readers
	chooser chooser
	later   []int        // free units that were returned, in that order
	aside   map[int]bool // units that readers have and that are offered to no other reader
	policy  Policy
	seed    uint64
	changes uint64
}

// New makes a scheduler of a queue whose units are all free. It asks for the
// holders of each unit once, in order, and keeps nothing of what is returned.
// The same calls with the same seed get the same advice.
func New(units int, holders func(unit int) []Holder, policy Policy, seed uint64) (*Scheduler, error) {
	p, err := newFreeUnits(units, holders)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{units: p, policy: policy, seed: seed}
	s.begin()
	return s, nil
}

func (s *Scheduler) begin() {
	s.readers = &readers{}
	s.later, s.aside = nil, make(map[int]bool)
	if s.policy == PolicyProbability {
		s.chooser = newProbability(s.units, s.readers, s.seed)
	} else {
		s.chooser = newFlow(s.units, s.readers)
	}
}
