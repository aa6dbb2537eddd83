package nodes_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// sweep has nodes be away for 1 s to 5 min in TestNodesFailInTurn and TestFiveNodes, in
// every order and way.
var sweep = flag.Bool("sweep", false, "have nodes fail for 1 s to 5 min, in every order")

// A turn is nodes that fail one after the other: all but the last are killed, or stopped.
// The last is killed, and then the first is back, so that a majority always is.
type turn struct {
	leads []bool // whether it is the one that leads by then, or one that follows
	stop  bool
	away  time.Duration // between two of them; until it is taken for dead, if 0
}

func (f turn) String() string {
	var who []string
	for _, leads := range f.leads {
		who = append(who, map[bool]string{true: "the leader", false: "a follower"}[leads])
	}
	how := map[bool]string{false: "killed", true: "stopped"}[f.stop]
	when := "when that is known"
	if f.away > 0 {
		when = "after " + f.away.String()
	}
	last := len(who) - 1
	return fmt.Sprintf("%s is %s, %s is killed, each %s", strings.Join(who[:last], ", then "), how, who[last], when)
}

// turns are those of so many failures: some, or with -sweep all.
func turns(failures int, some ...turn) (all []turn) {
	if !*sweep {
		return some
	}
	for _, away := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second, time.Minute, 5 * time.Minute} {
		for _, stop := range []bool{false, true} {
			for order := range 1 << failures {
				f := turn{stop: stop, away: away}
				for i := range failures {
					f.leads = append(f.leads, order>>i&1 > 0)
				}
				all = append(all, f)
			}
		}
	}
	return all
}

// Of three nodes one is away, be it for so long that it is taken for dead; then
// another fails, and the first is back: these two go on, and have all that was
// acknowledged.
func TestNodesFailInTurn(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	for _, n := range m.Nodes {
		m.source(n)
	}
	m.take(turns(2,
		turn{[]bool{false, true}, false, 0},
		turn{[]bool{true, false}, true, 0},
		turn{[]bool{false, false}, true, 0}))
}

// take goes through turns, and says what the longest outage was.
func (m *team) take(turns []turn) {
	var longest outage
	for i, f := range turns {
		if !m.part(f.String(), func(m *team) {
			took := m.inTurn(f, fmt.Sprint("turn", i))
			longest.leader, longest.write = max(longest.leader, took.leader), max(longest.write, took.write)
		}) {
			return // the rest would wait for what does not come
		}
	}
	m.t.Logf("a majority had a leader that is heard within %v, and wrote again within %v at most", longest.leader, longest.write)
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

// An outage is how long it took, once a majority was there again, until one of it led,
// and until a dataset was there.
type outage struct{ leader, write time.Duration }

// inTurn has nodes fail one after the other, and something be written after each. It
// returns how long the cluster was without them once the first was started, or went on.
func (m *team) inTurn(f turn, name string) (took outage) {
	m.t.Helper()
	up := m.Nodes
	var gone []*daemon.Place
	for i, leads := range f.leads {
		leader, others := m.LeaderOf(up)
		n := others[0]
		if leads {
			n = leader
		}
		last := i == len(f.leads)-1
		m.fail(n, f.stop && !last)
		up, gone = slices.DeleteFunc(slices.Clone(up), func(o *daemon.Place) bool { return o == n }), append(gone, n)
		begun := time.Now()
		switch {
		case last:
			m.back(gone[0], f.stop)
		case f.away > 0:
			time.Sleep(f.away)
		default:
			m.takenForDead(up[0], n)
		}
		m.led(up[0])
		took.leader = time.Since(begun)
		m.written(up[0], fmt.Sprint(name, "-", i))
		took.write = time.Since(begun)
	}
	m.t.Logf("led %v, written %v after the first was back", took.leader, took.write)
	for _, n := range gone[1 : len(gone)-1] {
		m.back(n, f.stop)
	}
	gone[len(gone)-1].Start()
	for i := range f.leads {
		m.Await(fmt.Sprint(name, "-", i))
	}
	return took
}

// led waits until a command that a majority has to write is acknowledged. Not all that say
// they lead do: one that has just lost its majority does not know that yet.
func (m *team) led(by *daemon.Place) {
	m.t.Helper()
	if _, err := by.Answer("token", "create"); err != nil {
		m.t.Fatalf("%s is with a majority, and no node leads it: %v", by.Host.Name, err)
	}
}

// Each of three nodes in turn is stopped, and meanwhile another is killed and
// started again: the third, alone for a moment, goes on with it as soon as it is
// back, and later with both. A stopped node knows nothing of this when it goes on.
func TestNodesStopInTurn(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	for _, n := range m.Nodes {
		m.source(n)
	}
	for i, n := range m.Nodes {
		m.voting()
		m.stopped(n, m.Nodes[(i+1)%3], m.Nodes[(i+2)%3], fmt.Sprint("n", i))
	}
}

func (m *team) stopped(n, killed, left *daemon.Place, name string) {
	m.t.Helper()
	m.fail(n, true)
	defer n.Signal(syscall.SIGCONT) // or its umount would hang, if this fails
	if *sweep {
		time.Sleep(30 * time.Second)
	} else {
		m.takenForDead(left, n)
	}
	m.written(left, name+"-before")
	killed.Kill()
	begun := time.Now()
	killed.Start()
	m.written(left, name+"-between")
	m.t.Logf("written %v after %s was killed", time.Since(begun), killed.Host.Name)
	if *sweep {
		time.Sleep(30 * time.Second)
	}
	n.Signal(syscall.SIGCONT)
	m.written(killed, name+"-after")
	for _, when := range []string{"-before", "-between", "-after"} {
		m.Await(name + when)
	}
}

func (m *team) fail(n *daemon.Place, stop bool) {
	m.t.Helper()
	if stop {
		n.Signal(syscall.SIGSTOP)
	} else {
		n.Kill()
	}
}

// back has a node go on that was killed, or stopped.
func (m *team) back(n *daemon.Place, stopped bool) {
	m.t.Helper()
	if stopped {
		n.Signal(syscall.SIGCONT)
	} else {
		n.Start()
	}
}

// takenForDead waits until one node knows that another is down.
func (m *team) takenForDead(by, dead *daemon.Place) {
	m.t.Helper()
	eventually.Within(m.t, patience, "it is taken for dead", func() bool {
		for _, n := range m.Members(by).Nodes {
			if n.Host == dead.Host.Name {
				return n.State == "down"
			}
		}
		return false
	})
}

// Three nodes are killed, and one is started. It serves what it knew: the dataset,
// and the plan that was settled. What would be new it refuses, and says who is
// missing.
func TestANodeAloneAfterAllWereKilled(t *testing.T) {
	t.Parallel()
	c := cluster.Wide(t)
	dir := c.Dir(t)
	c.DataNodes()[0].Put(t, dir+"/lines", lines(2<<20), 2, 1<<20)
	m := newTeam(t, c, c.DataNodes()[:3], "--hadoop-conf", c.Conf())
	m.Nodes[0].Do("dataset", "create", "d", "--source", "hdfs://"+c.Nameservice()+dir, "--as", "lines",
		"--ranks", "2", "--batch", "8192", "--order", "none")
	m.Await("d")
	want, err := daemon.Sums(m.Nodes[1], "d")
	if err != nil {
		t.Fatal(err)
	}
	m.voting()
	alone := m.Nodes[2]
	eventually.Within(t, patience, "it knows the plan", func() bool {
		return strings.Contains(alone.Must("cat", alone.Mount()+"/.rankfs/plans"), "d@")
	})
	for _, n := range m.Nodes {
		n.Kill()
	}
	begun := time.Now()
	alone.Start()
	t.Logf("it is mounted after %v", time.Since(begun))
	if out := alone.Do("dataset", "ls"); !strings.Contains(out, "d ") {
		t.Errorf("datasets: %s", out)
	}
	if out := alone.Do("status"); !strings.Contains(out, "  1 settled\n") {
		t.Errorf("status does not say that it knows a plan: %s", out)
	}
	got, err := daemon.Sums(alone, "d")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("what was planned has other bytes: %v", err)
	}
	t.Logf("what was planned is read after %v", time.Since(begun))
	_, err = alone.Tool("cat", alone.Mount()+"/datasets/d@epoch=1/rank-0/batch-000000")
	if err == nil || !strings.Contains(err.Error(), "No route to host") {
		t.Errorf("what was not planned: %v", err)
	}
	t.Logf("what was not planned is refused after %v: %v", time.Since(begun), err)
	out, err := alone.Rankfs("token", "create")
	if err == nil {
		t.Errorf("a token: %s", out)
	}
	t.Logf("a token is refused after %v: %v", time.Since(begun), err)
	for _, n := range m.Nodes[:2] {
		if !strings.Contains(fmt.Sprint(err), n.Host.Name) || !strings.Contains(alone.Do("status"), n.Host.Name) {
			t.Errorf("%s is missing, and not named: %v", n.Host.Name, err)
		}
	}
	if out := alone.Do("node", "ls"); strings.Count(out, " down ") != 2 {
		t.Errorf("two of three nodes are down:\n%s", out)
	}
	for _, n := range m.Nodes[:2] {
		n.Start()
	}
	m.voting()
	alone.Do("token", "create")
}

// Of three voters one is killed, and at once, before any node knows it, another is to be
// removed. That one stays, and with the node that removes it is a majority.
func TestAVoterIsRemovedJustAfterADeath(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	m.source(m.Nodes[0])
	operator := m.Nodes[0]
	for i := range 2 {
		m.voting()
		dead, needed := m.Nodes[1+i], m.Nodes[2-i]
		dead.Kill()
		var out string
		var err error
		eventually.Within(t, patience, "the removal is refused, once one leads", func() bool {
			out, err = operator.Rankfs("node", "rm", needed.Host.Name)
			return err == nil || !strings.Contains(err.Error(), "it has no leader")
		})
		if err == nil || !strings.Contains(err.Error(), dead.Host.Name) || !strings.Contains(err.Error(), "no majority") {
			t.Fatalf("the removal of %s just after %s was killed: %s %v", needed.Host.Name, dead.Host.Name, out, err)
		}
		m.written(operator, fmt.Sprint("n", i))
		dead.Start()
	}
}
