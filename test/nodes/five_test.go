package nodes_test

import (
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// Five nodes all vote. They outlive two that are killed at once, the leader one
// of them, and links that fail in all the ways that leave a node half there;
// meanwhile readers on the others read one epoch after the other, and no read of
// theirs fails. What becomes of plans is for test/plans.
func TestFiveNodes(t *testing.T) {
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
		{"three fail in turn, and the first is back", threeInTurn},
		{"the leader is not heard by one", deafToLeader},
		{"nobody hears the leader", muteLeader},
		{"a link flaps", flap},
		{"a link is slow", slowLink},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			m.in(t)
			m.allVote()
			part.run(m)
			m.allVote()
		}) {
			return // the rest would wait for what does not come
		}
		m.in(t)
	}
}

// allVote waits until one leads, and all vote and are up.
func (m *team) allVote() {
	m.t.Helper()
	daemon.Until(m.t, time.Minute, "all vote and are up", func() bool {
		s := m.members(m.Nodes[0])
		up := 0
		for _, n := range s.Nodes {
			if n.State == "up" {
				up++
			}
		}
		return s.Leader != "" && s.voters() == len(m.Nodes) && up == len(m.Nodes)
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
	took, err := create(nodes[0], name)
	if err != nil {
		m.t.Errorf("written meanwhile: %v", err)
	}
	m.t.Logf("written within %v", took)
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
	m.during(others[1:], "k", func() { each(dead, func(_ int, n *daemon.Place) { n.Kill() }) },
		func() {
			for _, n := range dead {
				n.Start()
			}
		})
}

// threeInTurn: each is taken for dead before the next one fails.
func threeInTurn(m *team) {
	leader, others := m.Leader()
	first, second, last := others[0], others[1], others[2]
	for _, n := range []*daemon.Place{first, second} {
		n.Kill()
		m.takenForDead(leader, n)
	}
	m.must(m.written(leader, "turn-between"))
	leader.Kill()
	first.Start()
	m.must(m.written(last, "turn-after"))
	for _, n := range []*daemon.Place{second, leader} {
		n.Start()
	}
	m.Await("turn-between")
	m.Await("turn-after")
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
