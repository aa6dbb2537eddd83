package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// Five nodes all vote. They outlive two that are killed at once, the leader one
// of them, and links that fail in all the ways that leave a node half there;
// meanwhile readers on the others read one epoch after the other, and no read of
// theirs fails. What becomes of plans is for test/plans.
func TestFiveNodes(t *testing.T) {
	t.Parallel()
	c := cluster.Five(t)
	m := newTeam(t, c, c.Hosts())
	for _, n := range m.Nodes {
		m.source(n)
	}
	m.numbers(m.Nodes[0], "d")
	for _, part := range []struct {
		name string
		run  func(m *team)
	}{
		{"two are killed at once", killTwo},
		{"the leader is not heard by one", deafToLeader},
		{"nobody hears the leader", muteLeader},
		{"a link flaps", flap},
		{"a link is slow", slowLink},
	} {
		if !m.part(part.name, part.run) {
			return // the rest would wait for what does not come
		}
	}
	for i, e := range endings() {
		if !m.part(e.String(), func(m *team) { m.threeInTurn(e, fmt.Sprint("turn", i)) }) {
			return
		}
	}
}

// part runs a part of a test on nodes that all vote, and leaves them so.
func (m *team) part(name string, run func(m *team)) bool {
	whole := m.t
	defer func() { m.in(whole) }()
	return whole.Run(name, func(t *testing.T) {
		m.in(t)
		m.allVote()
		run(m)
		m.allVote()
	})
}

// allVote waits until one leads, and all vote and are up.
func (m *team) allVote() {
	m.t.Helper()
	eventually.Within(m.t, patience, "all vote and are up", func() bool {
		s := m.Members(m.Nodes[0])
		return s.Leader != "" && s.Voters() == len(m.Nodes) && s.Up() == len(m.Nodes)
	})
}

// during reads on some nodes while something is amiss, has one of them write in
// the meantime, and then waits until all know what was written.
func (m *team) during(nodes []*daemon.Place, name string, amiss func(), over func()) {
	m.t.Helper()
	var readers []*rereader
	for _, n := range nodes {
		readers = append(readers, newRereader(m.t, n, "d"))
	}
	m.progress(readers)
	amiss()
	m.t.Logf("written within %v", m.written(nodes[0], name))
	m.progress(readers)
	over()
	for _, r := range readers {
		r.finish()
	}
	m.Await(name)
}

func (m *team) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func killTwo(m *team) {
	leader, others := m.Leader()
	dead := []*daemon.Place{leader, others[0]}
	m.during(others[1:], "k", func() { daemon.Each(dead, func(_ int, n *daemon.Place) { n.Kill() }) },
		func() {
			for _, n := range dead {
				n.Start()
			}
		})
}

// An ending says which three of five nodes are killed, one after the other: the one
// that leads by then, or one that follows. With the third the first is back.
type ending struct {
	leads [3]bool
	away  time.Duration // between two of them; until it is taken for dead, if 0
}

func (e ending) String() string {
	var who []string
	for _, leads := range e.leads {
		who = append(who, map[bool]string{true: "the leader", false: "a follower"}[leads])
	}
	when := "when that is known"
	if e.away > 0 {
		when = "after " + e.away.String()
	}
	return strings.Join(who, ", then ") + ", each " + when
}

func endings() []ending {
	if !*sweep {
		return []ending{{[3]bool{false, false, true}, 0}, {[3]bool{true, true, true}, 0}}
	}
	var all []ending
	for _, away := range []time.Duration{time.Second, 6 * time.Second, time.Minute} {
		for order := range 8 {
			all = append(all, ending{[3]bool{order&1 > 0, order&2 > 0, order&4 > 0}, away})
		}
	}
	return all
}

// threeInTurn: of the five there are always three once the first is back, and they
// go on with all that was written in between.
func (m *team) threeInTurn(e ending, name string) {
	up := m.Nodes
	var dead []*daemon.Place
	for i, leads := range e.leads {
		leader, others := m.LeaderOf(up)
		n := others[0]
		if leads {
			n = leader
		}
		n.Kill()
		up, dead = slices.DeleteFunc(slices.Clone(up), func(o *daemon.Place) bool { return o == n }), append(dead, n)
		switch {
		case i == 2:
			dead[0].Start()
		case e.away > 0:
			time.Sleep(e.away)
		default:
			m.takenForDead(up[0], n)
		}
		m.t.Logf("written %v after %d of 5 were killed", m.written(up[0], fmt.Sprint(name, "-", i)), i+1)
	}
	for _, n := range dead[1:] {
		n.Start()
	}
	for i := range e.leads {
		m.Await(fmt.Sprint(name, "-", i))
	}
}

// deafToLeader: what the leader sends to one node is lost, and not what that one
// sends.
func deafToLeader(m *team) {
	leader, others := m.Leader()
	m.during(append([]*daemon.Place{leader}, others[1:]...), "deaf",
		func() { m.must(leader.Host.LoseTo(others[0].Host)) },
		func() { m.must(leader.Host.LoseNothing()) })
}

// muteLeader: all that the leader sends is lost, so that another must lead, and
// the old one hears of it without being heard.
func muteLeader(m *team) {
	leader, others := m.Leader()
	m.during(others, "mute", func() {
		for _, n := range others {
			m.must(leader.Host.LoseTo(n.Host))
		}
	}, func() { m.must(leader.Host.LoseNothing()) })
}

func flap(m *team) {
	_, others := m.Leader()
	stop, stopped := make(chan struct{}), make(chan error)
	m.during(others[1:], "flap", func() {
		go func() { stopped <- flapping(others[0].Host, stop) }()
	}, func() {
		close(stop)
		m.must(<-stopped)
	})
}

// flapping pulls the plug of a host and puts it in again, each for longer than
// a heartbeat and shorter than an election.
func flapping(h *cluster.Host, stop chan struct{}) error {
	for {
		if err := h.LinkDown(); err != nil {
			return err
		}
		time.Sleep(700 * time.Millisecond)
		if err := h.LinkUp(); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(700 * time.Millisecond):
		}
	}
}

func slowLink(m *team) {
	leader, others := m.Leader()
	const perSecond = 32 << 10
	m.during(append([]*daemon.Place{leader}, others[1:]...), "slow",
		func() { m.must(others[0].Host.LinkRate(perSecond)) },
		func() { m.must(others[0].Host.LinkRate(0)) })
}
