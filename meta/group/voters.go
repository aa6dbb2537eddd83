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
	live   bool // it answers, or the leader has not led for long enough to say that it does not
	heard  bool // it has answered this leader
	idle   bool // it is being drained: rather no voter
	lost   bool // its log is lost: it must be out before it begins with nothing, and is not in until it has
	since  uint64
}

// A change is one towards the configuration that Raft should have.
type change struct {
	id string
	do action
}

type action uint8

const (
	nothing action = iota
	add            // as one without a vote
	promote
	demote
	remove
)

// votersFor is the number of voters of a cluster of so many nodes, whether they are up
// or not: with fewer votes a cluster could not survive a second failure, even with the
// first node back by then. Of two nodes one votes: with two votes both would have to be
// up.
func votersFor(admitted int) int {
	switch {
	case admitted >= 5:
		return 5
	case admitted >= 3:
		return 3
	}
	return 1
}

// next is the one change that is most needed. self leads, is live, and never
// loses its own vote.
//
// New votes come before old ones go, so that there are never fewer than there
// should be; a dead voter goes first of those that go, since it counts against the
// majority and does nothing for it, but not before another has its vote. No change
// leaves fewer live voters than a majority.
func next(self string, all []member) change {
	c := newRoster(self, all)
	for _, find := range []func() change{c.release, c.enter, c.elect, c.replace, c.expel, c.shrink} {
		if found := find(); found.do != nothing {
			return found
		}
	}
	return change{}
}

// A roster is the input of next: the members, and the sums of their votes.
type roster struct {
	self    string
	members []member // the oldest first
	want    int      // voters
	holders int      // votes of nodes that may have them
	live    int      // of those, votes of live nodes
	votes   int      // in all
}

func newRoster(self string, all []member) *roster {
	c := &roster{self: self, members: slices.SortedFunc(slices.Values(all), func(a, b member) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id))
	})}
	var admitted, able int
	for _, m := range c.members {
		if m.voter {
			c.votes++
		}
		if !m.admit {
			continue
		}
		admitted++
		if m.lost {
			continue
		}
		able++
		if m.voter {
			c.holders++
		}
		if m.voter && m.live {
			c.live++
		}
	}
	// A node that is about to begin anew is missing for a moment.
	c.want = min(votersFor(admitted), able)
	return c
}

// first is the change of the first of some members for which it may be made.
func (c *roster) first(members []member, do action, may func(m member) bool) change {
	for _, m := range members {
		if may(m) && c.allows(m, do) {
			return change{m.id, do}
		}
	}
	return change{}
}

// allows reports whether a majority of the voters is live after a change, or nearer
// to it than before. Raft counts the votes by the new configuration as soon as
// that is written.
func (c *roster) allows(m member, do action) bool {
	counts := m.admit && m.live && !m.lost
	switch do {
	case promote:
		return counts || 2*c.live > c.votes+1
	case demote:
		return m.id != c.self && (!counts || 2*(c.live-1) > c.votes-1)
	}
	return true
}

// release takes out of Raft a node that has lost its log: its vote, and then itself.
func (c *roster) release() change {
	lost := func(m member) bool { return m.lost && m.server && m.id != c.self }
	return cmp.Or(
		c.first(c.members, demote, func(m member) bool { return lost(m) && m.voter }),
		c.first(c.members, remove, func(m member) bool { return lost(m) && !m.voter }))
}

// enter adds an admitted node to Raft's configuration.
func (c *roster) enter() change {
	return c.first(c.members, add, func(m member) bool { return m.admit && !m.server && !m.lost })
}

// elect gives votes while live voters are too few. A node that is being drained gets one
// only if voters, dead ones included, are too few; and so does a dead node, if no other
// is left: its vote counts when it is back.
func (c *roster) elect() change {
	may := func(m member) bool { return m.admit && m.server && !m.voter && !m.lost }
	var found change
	if c.live < c.want {
		found = c.first(c.members, promote, func(m member) bool { return may(m) && m.live && m.heard && !m.idle })
	}
	if c.holders < c.want {
		found = cmp.Or(found,
			c.first(c.members, promote, func(m member) bool { return may(m) && m.live && m.heard }),
			c.first(c.members, promote, func(m member) bool { return may(m) && !m.live }))
	}
	return found
}

// replace takes the votes of removed nodes, and of dead ones that another has the
// vote of.
func (c *roster) replace() change {
	replaced := c.live >= c.want || c.holders > c.want
	goes := func(m member) bool { return m.voter && (!m.admit || !m.live && replaced) }
	return cmp.Or(
		c.first(c.members, demote, func(m member) bool { return goes(m) && !m.live }),
		c.first(c.members, demote, goes))
}

// expel takes a removed node out of Raft's configuration.
func (c *roster) expel() change {
	return c.first(c.members, remove, func(m member) bool { return m.server && !m.admit && !m.voter && m.id != c.self })
}

// shrink takes a vote if there are too many, that of a drained node or else of the
// youngest; and gives a drained voter's vote to another node.
func (c *roster) shrink() change {
	youngest := slices.Clone(c.members)
	slices.Reverse(youngest)
	if c.holders > c.want {
		return cmp.Or(
			c.first(youngest, demote, func(m member) bool { return m.voter && m.idle }),
			c.first(youngest, demote, func(m member) bool { return m.voter }))
	}
	if !slices.ContainsFunc(c.members, func(m member) bool { return m.voter && m.idle && m.id != c.self }) {
		return change{}
	}
	return c.first(c.members, promote, func(m member) bool {
		return m.admit && m.server && !m.voter && m.live && m.heard && !m.idle && !m.lost
	})
}
