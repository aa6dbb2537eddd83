package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/test/clock"
	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// jump sets the clock of a node's daemon ahead of the right time, or behind.
func (m *team) jump(n *daemon.Place, by time.Duration) {
	m.t.Helper()
	m.must(clock.Jump(n.PID(), by))
}

// Clocks of daemons jump, as those of machines do, hours and years, and back.
// What the cluster knows and what it serves stays the same, who has the right
// time goes on, and all do once all have it.
func TestClocksJump(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m, want := serving(t, c, c.Hosts()[:3])
	for _, part := range []struct {
		name string
		run  func(m *team)
	}{
		{"the leader is an hour ahead", func(m *team) { m.leaderJumps(time.Hour) }},
		{"the leader is an hour behind", func(m *team) { m.leaderJumps(-time.Hour) }},
		{"the leader is three years ahead", func(m *team) { m.leaderJumps(3 * year) }},
		{"a follower is a day ahead", func(m *team) { m.followerJumps(day) }},
		{"a follower is a day behind", func(m *team) { m.followerJumps(-day) }},
		{"all are a day ahead", allJump},
		{"a follower is past its certificate", func(m *team) { m.cutOff(3 * year) }},
		{"a follower is before the cluster", func(m *team) { m.cutOff(-3 * year) }},
		{"tokens", func(m *team) { m.tokens(c.Hosts()[3]) }},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			m.in(t)
			m.voting()
			part.run(m)
			for _, n := range m.Nodes {
				m.jump(n, 0)
			}
			m.voting()
		}) {
			return // the rest would wait for what does not come
		}
		m.in(t)
		for _, n := range m.Nodes[:3] {
			got, err := daemon.Sums(n, "d")
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("after %q %s has other bytes: %v", part.name, n.Host.Name, err)
			}
		}
	}
}

// named is a name of a dataset, another each time.
func (m *team) named() string { return fmt.Sprintf("x%016x", rand.Uint64()) }

// writing has each of some nodes write, and all of these know it.
func (m *team) writing(nodes []*daemon.Place) {
	m.t.Helper()
	for _, n := range nodes {
		name := m.named()
		m.t.Logf("%s wrote within %v", n.Host.Name, m.written(n, name))
		for _, o := range nodes {
			eventually.Within(m.t, patience, "it is known", func() bool {
				_, err := o.Tool("test", "-d", o.Mount()+"/datasets/"+name)
				return err == nil
			})
		}
	}
}

// leaderJumps: readers on all nodes go on, and those whose clock is right write,
// or all if it is not off by more than a certificate lasts.
func (m *team) leaderJumps(by time.Duration) {
	leader, others := m.Leader()
	writers := m.Nodes
	if by.Abs() > day {
		writers = others
	}
	m.during(others, m.named(), func() {
		m.jump(leader, by)
		m.writing(writers)
		eventually.Within(m.t, patience, "one leads whose clock is right", func() bool {
			s := m.Members(others[0])
			return s.Leader != "" && s.Leader != m.Members(leader).Self
		})
	}, func() {
		m.jump(leader, 0)
		m.writing(m.Nodes)
	})
}

// handedOver is what a leader logs that gives its lead away.
const handedOver = "most voters' clocks say that this node's is wrong: another leads now"

// followerJumps: no node whose clock is right gives the lead away, whichever has it on a busy
// machine.
func (m *team) followerJumps(by time.Duration) {
	_, others := m.Leader()
	right := slices.DeleteFunc(slices.Clone(m.Nodes), func(n *daemon.Place) bool { return n == others[0] })
	given := func() (times int) {
		for _, n := range right {
			times += strings.Count(n.Log(), handedOver)
		}
		return times
	}
	before := given()
	m.during(m.Nodes, m.named(), func() {
		m.jump(others[0], by)
		m.writing(m.Nodes)
		if given() > before {
			m.t.Error("the lead was given away, for the clock of a follower was wrong")
		}
	}, func() {
		m.jump(others[0], 0)
		m.writing(m.Nodes)
	})
}

func allJump(m *team) {
	m.during(m.Nodes, m.named(), func() {
		for _, n := range m.Nodes {
			m.jump(n, day)
		}
		m.writing(m.Nodes)
	}, func() {
		for _, n := range m.Nodes {
			m.jump(n, 0)
		}
		m.writing(m.Nodes)
	})
}

// cutOff: a follower's clock is so wrong that no certificate is good, and it
// loses its connections. It serves what is planned, and says what is wrong when
// it is to write; the others go on. Once the clock is right it is back.
func (m *team) cutOff(by time.Duration) {
	_, others := m.Leader()
	far := others[0]
	rest := slices.DeleteFunc(slices.Clone(m.Nodes), func(n *daemon.Place) bool { return n == far })
	before, err := daemon.Sums(far, "d")
	m.must(err)
	m.during(rest, m.named(), func() {
		m.jump(far, by)
		m.must(far.Host.LinkDown())
		eventually.Within(m.t, patience, "it is missed", func() bool { return m.state(rest[0], far) == "down" })
		eventually.Within(m.t, patience, "it misses them", func() bool { return m.Members(far).Leader == "" })
		eventually.Within(m.t, patience, "it has no connection that was made before", func() bool {
			far.Must("ss", "-KHtn", "dst", rest[0].Host.IP+"/24")
			return far.Must("ss", "-Htn", "state", "established", "dst", rest[0].Host.IP+"/24") == ""
		})
		m.must(far.Host.LinkUp())
		m.refused(far, m.named(), "set the clocks")
		m.writing(rest)
		after, err := daemon.Sums(far, "d")
		if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
			m.t.Errorf("cut off, it reads other bytes: %v", err)
		}
		if s := m.state(rest[0], far); s != "down" {
			m.t.Errorf("the others say that it is %s", s)
		}
	}, func() {
		m.jump(far, 0)
		eventually.Within(m.t, patience, "it is back", func() bool { return m.state(rest[0], far) == "up" })
		m.writing(m.Nodes)
	})
}

// state is what a node says of another.
func (m *team) state(by, of *daemon.Place) string {
	m.t.Helper()
	for _, one := range m.Members(by).Nodes {
		if one.Host == of.Host.Name {
			return one.State
		}
	}
	return "unknown"
}

// tokens: one that a node makes whose clock is wrong lets a node in for an hour, whichever node is
// asked, and no longer.
func (m *team) tokens(host *cluster.Host) {
	leader, others := m.Leader()
	for _, by := range []time.Duration{day, -20 * time.Hour} {
		m.jump(others[0], by)
		token := m.Token(others[0], 2)
		m.jump(others[0], 0)
		m.jump(leader, 0)
		if by > 0 {
			in := daemon.New(m.t, rankfs, host, "--listen", host.IP+daemon.Port, "--ram", "256MiB")
			m.Join(in, others[1], token)
			m.numbers(in, m.named())
			m.takesOut(leader, m.Members(in).Self)
			in.Stop()
		}
		for _, n := range m.Nodes {
			m.jump(n, 2*time.Hour)
		}
		late := daemon.New(m.t, rankfs, host, "--listen", host.IP+daemon.Port)
		if err := late.Try("--join", others[1].Host.IP+daemon.Port, "--token", token); err == nil {
			m.t.Errorf("made %v ahead, a token of an hour lets in after two", by)
		}
		if log := late.Log(); !strings.Contains(log, "unknown or expired") {
			m.t.Errorf("it is not told why: %s", log)
		}
		for _, n := range m.Nodes {
			m.jump(n, 0)
		}
	}
}

// Readers on all nodes drain a queue, and clocks of daemons jump, the leader's
// among them: every batch is finished by one of them, once.
func TestAQueueOfWrongClocks(t *testing.T) {
	t.Parallel()
	const batches = 1000
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	m.source(m.Nodes[0])
	m.Nodes[0].Do("dataset", "create", "q", "--source", "file:"+m.Nodes[0].Dir+"/numbers", "--as", "lines", "--ranks", "4", "--batch", "10")
	m.Await("q")
	m.voting()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var readers []*reader
	for i := range 6 {
		readers = append(readers, newReader(t, m.Nodes[i%3], "q@order=full", i%4, 0))
	}
	ended := make(chan error)
	for _, r := range readers {
		go func() { ended <- r.cmd.Wait() }()
	}
	jumps := 0
	for left := len(readers); left > 0; {
		select {
		case err := <-ended:
			left--
			if err != nil {
				t.Errorf("a reader: %v", err)
			}
		case <-time.After(time.Duration(random.IntN(500)) * time.Millisecond):
			// As far as certificates are good: they begin a day before the cluster.
			hours := random.IntN(20+6*24) - 20
			m.jump(m.Nodes[random.IntN(3)], time.Duration(hours)*time.Hour*time.Duration(random.IntN(2)))
			jumps++
		}
	}
	finishedOnce(t, readers, batches)
	t.Logf("clocks jumped %d times", jumps)
}
