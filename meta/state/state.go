package state

import "iter"

// A state is all that is replicated, and what is derived from it.
//
// Invariants, after every command:
//   - a unit of a queue has one finisher at most and two holders at most;
//   - a unit that was set aside, and is not done, is taken by no reader;
//   - no reader holds a unit on a node that is down or removed;
//   - a token was redeemed as often as it says, and never more than allowed;
//   - plans, claims and queues are of the current generation of a dataset;
//   - every bound of a section, as its file has it.
type state struct {
	header
	sections []sharer // in the order of the table

	// era counts snapshots. A job or queue of an earlier era is shared with
	// one, and is copied before it is changed.
	era     uint64
	changed struct{ cluster, files, queues bool } // by the command that is being applied
}

// A sharer is a section, as the state knows it. One that has to do with more than its own
// commands has, as well, what of these it wants:
//   - advance, called whenever the clock has been set;
//   - nodeGone, after a node was removed;
//   - datasetGone, after a dataset was removed, or replaced by its next generation;
//   - whole, which checks at the end of a snapshot what only that shows.
type sharer interface {
	share() sharer // a copy that stays what it is, and to which nothing is applied
}

// having are the sections of a state that are a T as well, in the order of the table.
func having[T any](s *state) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, one := range s.sections {
			if is, ok := one.(T); ok && !yield(is) {
				return
			}
		}
	}
}

// header has the values that are in no section.
type header struct {
	Version    int `json:",omitempty"` // of the commands that are taken; none before Signed
	Cluster    Cluster
	Now        int64  // time of the cluster
	Generation uint64 // the last that a dataset was given
	Sequence   uint64 // the last number that a job, plan or queue was given
	Evicted    uint64 `json:",omitempty"` // of the last plan that was dropped for room
	Applied    uint64 `json:"-"`          // index of the last command
}

// A Cluster is identified by its id and by the authority that it trusts.
type Cluster struct {
	ID string `json:",omitempty"`
	CA string `json:",omitempty"` // fingerprint of the certificate of its authority
}

// advance sets the cluster's time to that of the leader's clock. It may go back: else,
// after a clock that was years ahead for a moment, time would stand still for years,
// and no token would expire.
func (s *state) advance(at int64) {
	s.Now = max(at, 0)
	for one := range having[interface{ advance(*state) }](s) {
		one.advance(s)
	}
}

func (s *state) next() uint64 {
	s.Sequence++
	return s.Sequence
}

// share is a copy of the state that stays what it is. Nothing may be applied
// to it.
func (s *state) share() *state {
	c := &state{header: s.header, sections: make([]sharer, len(s.sections))}
	for i, one := range s.sections {
		c.sections[i] = one.share()
	}
	s.era++
	return c
}

func (h *header) version() int { return max(h.Version, Oldest) }

func (s *state) snapshotVersion() int { return snapshotOf(s.version()) }

// sectionOf is the section of that type.
func sectionOf[S sharer](s *state) S {
	for _, one := range s.sections {
		if is, ok := one.(S); ok {
			return is
		}
	}
	panic("state: a section that is not in the table")
}
