package plans_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// voting waits until one leads, three vote and all are up, as all nodes see it.
func (m *team) voting() {
	m.t.Helper()
	for _, n := range m.Nodes {
		eventually.Within(m.t, patience, "one leads, three vote, all are up", func() bool {
			s := m.Members(n)
			return s.Leader != "" && s.Voters() == 3 && s.Up() == len(m.Nodes)
		})
	}
}

// split gives the nodes apart that vote.
func (m *team) split() (voters, others []*daemon.Place) {
	m.t.Helper()
	s := m.Members(m.Nodes[0])
	for _, n := range m.Nodes {
		votes := false
		for _, one := range s.Nodes {
			votes = votes || one.Host == n.Host.Name && one.Voter
		}
		if votes {
			voters = append(voters, n)
		} else {
			others = append(others, n)
		}
	}
	return voters, others
}

// refused checks that a node refuses a view that is not planned, for want of a
// majority, and says so in its log, with the nodes that are missing.
func (m *team) refused(n *daemon.Place, view string) {
	m.t.Helper()
	out, err := n.Tool("cat", n.Mount()+"/datasets/"+view+"/rank-0/batch-000000")
	if err == nil || !strings.Contains(err.Error(), "No route to host") || out != "" {
		m.t.Errorf("on %s, without a majority, %s gave %d bytes, and %v", n.Host.Name, view, len(out), err)
	}
	if log := n.Log(); !slices.ContainsFunc(strings.Split(log, "\n"), func(line string) bool {
		return strings.Contains(line, "plan of "+view+",") && strings.Contains(line, "these do not answer: ")
	}) {
		m.t.Errorf("the log of %s does not say of which plan it was, and which nodes are missing:\n%s", n.Host.Name, log)
	}
}

// With two of three voters gone nothing new is agreed on: what is planned is read
// to the last byte, from HDFS too, and what is not is refused with EHOSTUNREACH.
// With one of them back, it is planned.
func TestAMinorityServesWhatIsPlanned(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 8, c.DataNodes()...)
	m := newTeam(t, c, c.DataNodes())
	m.create("d", k, "--ranks", "4", "--batch", "512", "--order", "full")
	m.voting()
	voters, others := m.split()
	left := []*daemon.Place{voters[2], others[0]}
	// Epoch 0 is planned: a node that is going to be gone has opened a batch of it.
	voters[0].Must("cat", voters[0].Mount()+"/datasets/d/rank-0/batch-000000")
	for _, n := range left {
		eventually.Within(t, patience, "it knows the plan", func() bool {
			return strings.Contains(n.Must("cat", n.Mount()+"/.rankfs/plans"), "d@epoch=0,")
		})
	}
	voters[0].Kill()
	voters[1].Kill()
	daemon.Each(left, func(i int, n *daemon.Place) {
		m.refused(n, fmt.Sprintf("d@epoch=%d", i+1))
		k.whole(t, n, "d")
	})
	voters[0].Start()
	daemon.Each(left, func(_ int, n *daemon.Place) { k.whole(t, n, "d@epoch=1") })
}

// The leader's host is cut off, its datanode with it. The others go on to plan
// epochs and read them whole, while it refuses one that is not planned; with its
// link it has the plans that were made meanwhile, and makes others.
func TestAnEpochIsPlannedWithoutTheLeader(t *testing.T) {
	c := cluster.Plans(t)
	k := put(t, c, 8, c.DataNodes()...)
	m := newTeam(t, c, c.DataNodes())
	m.create("d", k, "--ranks", "4", "--batch", "512", "--order", "full")
	m.voting()
	leader, others := m.Leader()
	if err := leader.Host.LinkDown(); err != nil {
		t.Fatal(err)
	}
	daemon.Each(append([]*daemon.Place{leader}, others...), func(i int, n *daemon.Place) {
		if n == leader {
			m.refused(n, "d@epoch=7")
		} else {
			k.whole(t, n, fmt.Sprintf("d@epoch=%d", i))
		}
	})
	if err := leader.Host.LinkUp(); err != nil {
		t.Fatal(err)
	}
	m.voting()
	want, err := daemon.Sums(others[0], "d@epoch=1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := daemon.Sums(leader, "d@epoch=1"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("back again, it reads other bytes of what was planned meanwhile: %v", err)
	}
	k.whole(t, leader, "d@epoch=7")
}
