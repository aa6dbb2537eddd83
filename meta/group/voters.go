package group

import (
	"cmp"
	"slices"
)

// A member is a node as the leader sees it.
type member struct {
	id     string
	admit  bool // the state machine has it; if not it has to leave
	server bool // Raft has it
	voter  bool
	live   bool // it answers
	idle   bool // it is being drained: rather no voter
	lost   bool // its log is lost: it must be out before it begins with nothing, and is not in until it has
	since  uint64
}

// A change is one step towards the configuration that Raft should have.
type change struct {
	id string
	do step
}

type step uint8

const (
	nothing step = iota
	add          // as one without a vote
	promote
	demote
	remove
)

// votersFor is how many voters a cluster of so many live nodes should have. Two
// would be worse than one: both would have to be alive.
func votersFor(live int) int {
	switch {
	case live >= 5:
		return 5
	case live >= 3:
		return 3
	}
	return 1
}

// next is the one change that is most needed. self leads, is live, and never
// takes its own vote away.
//
// New votes come before old ones go, so that there are never fewer than before;
// a dead voter goes first of those that go, since it counts against the
// majority and does nothing for it.
func next(self string, all []member) change {
	members := slices.SortedFunc(slices.Values(all), func(a, b member) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id))
	})
	var live, able, liveVoters int
	for _, m := range members {
		switch {
		case !m.admit || !m.live:
			continue
		case !m.lost:
			able++
		}
		live++
		if m.voter {
			liveVoters++
		}
	}
	// Who is about to begin anew is missing for a moment; nobody loses a vote for it.
	want := min(votersFor(live), able)
	for _, m := range members {
		switch {
		case !m.lost || !m.server || m.id == self:
		case m.voter:
			return change{m.id, demote}
		default:
			return change{m.id, remove}
		}
	}
	for _, m := range members {
		if m.admit && !m.server && !m.lost {
			return change{m.id, add}
		}
	}
	if liveVoters < want {
		for _, idle := range []bool{false, true} {
			for _, m := range members {
				if m.admit && m.server && !m.voter && m.live && m.idle == idle {
					return change{m.id, promote}
				}
			}
		}
	}
	for _, live := range []bool{false, true} {
		for _, m := range members {
			if m.voter && m.id != self && m.live == live && (!m.admit || !live && liveVoters >= want) {
				return change{m.id, demote}
			}
		}
	}
	for _, m := range members {
		if m.server && !m.admit && m.id != self {
			return change{m.id, remove}
		}
	}
	return surplus(self, members, liveVoters > want)
}

// surplus takes a vote from one who is drained if another can have it, or from
// the youngest if there are too many.
func surplus(self string, members []member, many bool) change {
	spare := slices.ContainsFunc(members, func(m member) bool {
		return m.admit && m.server && !m.voter && m.live && !m.idle
	})
	for _, m := range slices.Backward(members) {
		if m.voter && m.idle && m.id != self && many {
			return change{m.id, demote}
		}
	}
	for _, m := range slices.Backward(members) {
		switch {
		case !m.voter || m.id == self:
		case many:
			return change{m.id, demote}
		case m.idle && spare:
			return change{firstSpare(members), promote}
		}
	}
	return change{}
}

func firstSpare(members []member) string {
	for _, m := range members {
		if m.admit && m.server && !m.voter && m.live && !m.idle {
			return m.id
		}
	}
	return ""
}
