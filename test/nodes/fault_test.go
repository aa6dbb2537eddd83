package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// numbers makes a source on a node's host, and a dataset of it: 4 ranks, 25
// batches each.
func (m *team) numbers(n *daemon.Place, name string) {
	m.t.Helper()
	m.source(n)
	n.Do("dataset", "create", name, "--source", "file:"+n.Dir+"/numbers", "--as", "lines", "--ranks", "4", "--batch", "100")
	m.Await(name)
}

func (m *team) source(n *daemon.Place) {
	m.t.Helper()
	n.Must("sh", "-c", `seq 1 10000 > "$0"`, n.Dir+"/numbers")
}

// create makes a dataset of a node's source, and says how long that took.
func create(n *daemon.Place, name string) (time.Duration, error) {
	begun := time.Now()
	_, err := n.Rankfs(creates(n, name)...)
	return time.Since(begun), err
}

func creates(n *daemon.Place, name string) []string {
	return []string{"dataset", "create", name, "--source", "file:" + n.Dir + "/numbers", "--as", "lines"}
}

// written is create while nodes fail: for as long as there is no leader it is tried again,
// and may turn out to have been done.
func (m *team) written(n *daemon.Place, name string) time.Duration {
	m.t.Helper()
	begun := time.Now()
	if _, err := n.Answer(creates(n, name)...); err != nil && !strings.Contains(err.Error(), "exists") {
		m.t.Fatalf("on %s %s is not written: %v", n.Host.Name, name, err)
	}
	return time.Since(begun)
}

// refused has a node that is cut off write in vain, until it says why it cannot: at first it
// may not know that.
func (m *team) refused(n *daemon.Place, name, why string) {
	m.t.Helper()
	eventually.Done(m.t, patience, n.Host.Name+" says why it cannot write", func() error {
		took, err := create(n, name)
		if err == nil {
			m.t.Fatalf("%s is cut off, and wrote", n.Host.Name)
		}
		if !strings.Contains(err.Error(), why) {
			return err
		}
		m.t.Logf("refused within %v: %v", took, err)
		return nil
	})
}

// takesOut has a node take another out of the cluster. That is refused while no node leads,
// or one that stays does not answer for a moment.
func (m *team) takesOut(by *daemon.Place, id string) {
	m.t.Helper()
	eventually.Done(m.t, patience, "node "+id+" is taken out", func() error {
		_, err := by.Rankfs("node", "rm", id)
		for _, n := range m.Members(by).Nodes {
			if n.ID == id {
				return errors.Join(errors.New("it is there"), err)
			}
		}
		return nil
	})
}

// voting waits until as many nodes vote as should.
func (m *team) voting() {
	m.t.Helper()
	eventually.Within(m.t, patience, "one leads, three vote, all are up", func() bool {
		s := m.Members(m.Nodes[0])
		return s.Leader != "" && s.Voters() == 3 && s.Up() == len(m.Nodes)
	})
}

// agree waits until all nodes have a dataset.
func (m *team) agree(name string) {
	m.t.Helper()
	m.Await(name)
	m.voting()
}

// serving is a team that serves a dataset, d, and the checksums of its batches.
func serving(t *testing.T, c *cluster.Cluster, hosts []*cluster.Host) (m *team, want map[string]string) {
	t.Helper()
	m = newTeam(t, c, hosts)
	for _, n := range m.Nodes {
		m.source(n)
	}
	m.numbers(m.Nodes[0], "d")
	want, err := daemon.Sums(m.Nodes[0], "d")
	if err != nil {
		t.Fatal(err)
	}
	return m, want
}

// One team goes through everything that happens to nodes, one after the other.
// It stays of one mind, and goes on after each.
func TestATeamOutlivesItsTroubles(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m, want := serving(t, c, c.Hosts())
	for _, part := range []struct {
		name string
		run  func(t *testing.T, m *team)
	}{
		{"a follower is killed", killFollower},
		{"the leader is killed", killLeader},
		{"the leader is stopped", stopLeader},
		{"the leader's link is down", unplugLeader},
		{"all daemons are started anew", rolling},
		{"a removed node tries again", removed},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			m.in(t)
			m.voting()
			part.run(t, m)
		}) {
			return // the rest would wait for what does not come
		}
		m.in(t)
		got, err := daemon.Sums(m.Nodes[0], "d")
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %q the view has other bytes: %v", part.name, err)
		}
	}
}

func killFollower(t *testing.T, m *team) {
	leader, others := m.Leader()
	dead := others[len(others)-1]
	dead.Kill()
	t.Logf("written within %v", m.written(leader, "f"))
	dead.Start()
	m.agree("f")
}

func killLeader(t *testing.T, m *team) {
	leader, others := m.Leader()
	leader.Kill()
	t.Logf("another leads, and it is written, within %v", m.written(others[0], "l"))
	leader.Start()
	m.agree("l")
}

func stopLeader(t *testing.T, m *team) {
	leader, others := m.Leader()
	leader.Signal(syscall.SIGSTOP)
	defer leader.Signal(syscall.SIGCONT) // or its umount would hang, if this fails
	t.Logf("another leads, and it is written, within %v", m.written(others[0], "s"))
	m.takenForDead(others[0], leader)
	leader.Signal(syscall.SIGCONT)
	t.Logf("it writes again within %v", m.written(leader, "s2"))
	m.agree("s2")
	m.Await("s")
}

// A node that is cut off serves what is planned from what it has, and says that
// it cannot write; no command hangs.
func unplugLeader(t *testing.T, m *team) {
	leader, others := m.Leader()
	name := "u-" + leader.Host.Name
	leader.Do("dataset", "create", name, "--source", "file:"+leader.Dir+"/numbers", "--as", "lines", "--ranks", "2", "--batch", "100")
	m.Await(name)
	before, err := daemon.Sums(leader, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Host.LinkDown(); err != nil {
		t.Fatal(err)
	}
	defer leader.Host.LinkUp()
	t.Logf("another leads, and it is written, within %v", m.written(others[0], "n"))
	m.refused(leader, "m", "majority")
	after, err := daemon.Sums(leader, name)
	if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("cut off, it reads other bytes: %v", err)
	}
	if err := leader.Host.LinkUp(); err != nil {
		t.Fatal(err)
	}
	m.agree("n")
}

// rolling starts each daemon anew while a loop reads on its host. What is open
// stays readable; an open that finds no daemon tries again.
func rolling(t *testing.T, m *team) {
	for _, n := range m.Nodes {
		log := filepath.Join(n.Dir, "loop")
		ctx, cancel := context.WithCancel(context.Background())
		loop := n.Command(ctx, "sh", "-c", `
			exec 3< "$0/datasets/d/rank-0/batch-000000"
			i=0
			while [ ! -e "$1.end" ]; do
				f=$0/datasets/d/rank-$((i % 4))/batch-$(printf %06d $((i / 4 % 25)))
				if sum=$(sha256sum "$f" 2>>"$1.err"); then echo "rank-$((i % 4))/batch-$(printf %06d $((i / 4 % 25))) ${sum%% *}" >> "$1"; i=$((i + 1))
				else echo retry >> "$1"; sleep 0.1; fi
			done
			sha256sum <&3`, n.Mount(), log)
		var out strings.Builder
		loop.Stdout, loop.Stderr = &out, &out
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		read := func() int {
			text, _ := os.ReadFile(log)
			return strings.Count(string(text), "batch")
		}
		eventually.Within(t, patience, "the loop reads", func() bool { return read() > 10 })
		n.Kill()
		n.Start()
		again := read()
		eventually.Within(t, patience, "the loop reads again", func() bool { return read() > again+100 })
		os.WriteFile(log+".end", nil, 0o600)
		if err := loop.Wait(); err != nil {
			t.Errorf("on %s: %v %s", n.Host.Name, err, out.String())
		}
		cancel()
		want, err := daemon.Sums(n, "d")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(log)
		for line := range strings.Lines(string(text)) {
			if name, sum, ok := strings.Cut(strings.TrimSpace(line), " "); ok && want[name] != sum {
				t.Fatalf("on %s: %s, want %s", n.Host.Name, line, want[name])
			}
		}
		if got := strings.TrimSuffix(strings.TrimSpace(out.String()), "  -"); got != want["rank-0/batch-000000"] {
			t.Errorf("on %s what was open is %s", n.Host.Name, got)
		}
		m.voting()
	}
}

// A removed node keeps what it has open and nothing else, and does not come back.
func removed(t *testing.T, m *team) {
	last := m.Nodes[len(m.Nodes)-1]
	id := m.Members(last).Self
	leader, _ := m.Leader()
	if leader == last {
		leader = m.Nodes[0]
	}
	m.takesOut(leader, id)
	eventually.Within(t, patience, "it is gone", func() bool { return len(m.Members(leader).Nodes) == len(m.Nodes)-1 })
	took, err := create(last, "r")
	if err == nil {
		t.Error("it still writes")
	}
	t.Logf("refused within %v: %v", took, err)
	last.Kill()
	if err := last.Try(); err == nil {
		if _, err := create(last, "r2"); err == nil {
			t.Error("it writes again")
		}
	}
	if s := m.Members(leader); len(s.Nodes) != len(m.Nodes)-1 {
		t.Errorf("it is back: %+v", s)
	}
}
