package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// What a node has on disk of the cluster is cut short, damaged or old, and it is
// started: it knows what the others do, votes, and no byte of its batches is
// another.
func TestWhatIsOnDiskIsDamaged(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m, want := serving(t, c, c.Hosts()[:3])
	m.voting()
	_, others := m.Leader()
	n := others[0]
	for _, part := range []struct {
		name string
		run  func(m *team, n *daemon.Place)
	}{
		{"the log is torn", tornLog},
		{"all snapshots are damaged", damagedSnapshots},
		{"the log went on for a week", aWeekOfLog},
		{"it joins again", joinsAgain},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			m.in(t)
			part.run(m, n)
			name := "after-" + strings.ReplaceAll(part.name, " ", "-")
			m.written(n, name)
			m.agree(name)
			if got, err := daemon.Sums(n, "d"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("it has other bytes: %v", err)
			}
		}) {
			return // the rest would wait for what does not come
		}
		m.in(t)
	}
}

// files are those in a node's state directory, by the cluster's names for them.
func (m *team) files(n *daemon.Place, pattern string) []string {
	m.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.Dir, "state", "raft", pattern))
	if err != nil || len(found) == 0 {
		m.t.Fatalf("no %s below %s: %v", pattern, n.Dir, err)
	}
	return found
}

func tornLog(m *team, n *daemon.Place) {
	for range 3 {
		n.Kill()
		segments := m.files(n, "log/*.wal")
		size := rand.Int64N(4000)
		m.t.Logf("cut to %d bytes", size)
		m.must(os.Truncate(segments[len(segments)-1], size))
		n.Start()
		m.voting()
	}
}

func damagedSnapshots(m *team, n *daemon.Place) {
	for i := range 2 { // as many as are kept
		n.Stop() // which makes one
		n.Start()
		m.written(n, fmt.Sprint("between-", i))
	}
	n.Stop()
	for _, file := range m.files(n, "snapshots/*/state.bin") {
		text, err := os.ReadFile(file)
		m.must(err)
		text[len(text)/2] ^= 1
		m.must(os.WriteFile(file, text, 0o600))
	}
	n.Start()
	m.files(n, "damaged/*") // where it puts what it cannot read
}

// aWeekOfLog has the others write more than they keep of their log, and make the
// snapshots that a week brings.
func aWeekOfLog(m *team, n *daemon.Place) {
	leader, _ := m.Leader()
	for leader == n { // the one that is to be away does not lead
		n.Kill()
		n.Start()
		m.voting()
		leader, _ = m.Leader()
	}
	m.units(leader, "week")
	n.Kill()
	others := slices.DeleteFunc(slices.Clone(m.Nodes), func(o *daemon.Place) bool { return o == n })
	before := m.applied(leader)
	m.crowd(others, "week").finish()
	m.t.Logf("%d commands", m.applied(leader)-before)
	for _, o := range others {
		o.Stop()
		o.Start()
	}
	n.Start()
	eventually.Within(m.t, patience, "it knows as much as another", func() bool { return m.applied(n) >= m.applied(others[0]) })
	first := filepath.Base(m.files(n, "log/*.wal")[0])
	if index := strings.TrimLeft(first[:20], "0"); len(index) < 4 {
		m.t.Errorf("its log begins at %s: it was given all of the log, and no snapshot", index)
	}
}

// applied is how many commands of the cluster a node has executed.
func (m *team) applied(n *daemon.Place) uint64 {
	m.t.Helper()
	var s struct{ Cluster struct{ Applied uint64 } }
	n.Status(&s)
	return s.Cluster.Applied
}

// joinsAgain: a member is told to join, by a new token; and by the token that it
// had used, of which nothing is left.
func joinsAgain(m *team, n *daemon.Place) {
	members, id := len(m.Members(n).Nodes), m.Members(n).Self
	at, _ := m.Leader()
	token := m.Token(at, 1)
	for range 2 {
		n.Stop()
		m.Join(n, at, token)
		if s := m.Members(n); len(s.Nodes) != members || s.Self != id {
			m.t.Errorf("%d members, itself %s; there were %d, and it was %s", len(s.Nodes), s.Self, members, id)
		}
	}
}
