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
		{"no node hears the leader", muteLeader},
		{"a link flaps", flap},
		{"a link is slow", slowLink},
	} {
		if !m.part(part.name, part.run) {
			return // the rest would wait for what does not come
		}
	}
	m.take(turns(3,
		turn{[]bool{false, false, true}, false, 0},
		turn{[]bool{true, true, true}, false, 0},
		turn{[]bool{true, false, false}, true, 0}))
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
