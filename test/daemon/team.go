package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// A Team is daemons on several hosts, of one cluster.
type Team struct {
	T     testing.TB // that fails when something goes wrong
	Nodes []*Place
}

// Port is where the daemons listen, each on its host.
const Port = ":7420"

// NewTeam founds a cluster on the first host and has the others join.
func NewTeam(t testing.TB, program string, hosts []*cluster.Host, options ...string) *Team {
	t.Helper()
	m := Gather(t, program, hosts, options...)
	m.Found()
	return m
}

// Gather is a team whose daemons are yet to be started.
func Gather(t testing.TB, program string, hosts []*cluster.Host, options ...string) *Team {
	t.Helper()
	m := &Team{T: t}
	for _, h := range hosts {
		m.Nodes = append(m.Nodes, New(t, program, h, append([]string{"--listen", h.IP + Port}, options...)...))
	}
	return m
}

// Found starts the first daemon, and has the others join it.
func (m *Team) Found() {
	m.T.Helper()
	m.Nodes[0].Start()
	token := m.Token(m.Nodes[0], len(m.Nodes))
	for _, n := range m.Nodes[1:] {
		m.Join(n, m.Nodes[0], token)
	}
}

// Token has a node make a token, to be used that many times. The nodes that it lets
// in are operators, so that tests may ask anything of any node.
func (m *Team) Token(by *Place, uses int) string {
	m.T.Helper()
	return strings.TrimSpace(by.Do("token", "create", "--role", "operator", "--uses", fmt.Sprint(uses)))
}

// Join starts a daemon that joins the cluster of another.
func (m *Team) Join(n, at *Place, token string) {
	m.T.Helper()
	n.Start("--join", at.Host.IP+Port, "--token", token)
}

// Restart ends all daemons and starts them again: what they had in memory is
// gone, what they know is not.
func (m *Team) Restart() {
	m.T.Helper()
	err := m.each(func(n *Place) error {
		n.Stop()
		return nil
	})
	// None is ready before a majority is there.
	if err = errors.Join(err, m.each(func(n *Place) error { return n.Try() })); err != nil {
		m.T.Fatal(err)
	}
}

func (m *Team) each(do func(*Place) error) error {
	errs := make([]error, len(m.Nodes))
	Each(m.Nodes, func(i int, n *Place) { errs[i] = do(n) })
	return errors.Join(errs...)
}

// Await waits until a dataset is everywhere.
func (m *Team) Await(name string) {
	m.T.Helper()
	for _, n := range m.Nodes {
		eventually.Within(m.T, waitTime, "the dataset is there", func() bool {
			_, err := n.Tool("test", "-d", n.Mount()+"/datasets/"+name)
			return err == nil
		})
	}
}

// Members are a cluster as one of its nodes sees it.
type Members struct {
	Self, Leader string
	Nodes        []struct {
		ID, Host, State string
		Voter           bool
	}
}

// Members are those that a node knows.
func (m *Team) Members(n *Place) (s Members) {
	m.T.Helper()
	text := n.Do("--json", "node", "ls")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		m.T.Fatalf("%v: %s", err, text)
	}
	return s
}

// Voters counts the nodes that vote.
func (s Members) Voters() (n int) {
	for _, one := range s.Nodes {
		if one.Voter {
			n++
		}
	}
	return n
}

// Up counts the nodes that are up.
func (s Members) Up() (n int) {
	for _, one := range s.Nodes {
		if one.State == "up" {
			n++
		}
	}
	return n
}

// Leader waits until one of the nodes leads, and returns it and the others.
func (m *Team) Leader() (leader *Place, others []*Place) {
	m.T.Helper()
	return m.LeaderOf(m.Nodes)
}

// LeaderOf is Leader among some nodes: those that run.
func (m *Team) LeaderOf(some []*Place) (leader *Place, others []*Place) {
	m.T.Helper()
	eventually.Within(m.T, waitTime, "one of them leads", func() bool {
		leader, others = nil, nil
		for _, n := range some {
			if s := m.Members(n); leader == nil && s.Self == s.Leader {
				leader = n
			} else {
				others = append(others, n)
			}
		}
		return leader != nil
	})
	return leader, others
}

// Each does something on some nodes at once.
func Each(nodes []*Place, do func(i int, n *Place)) {
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { do(i, n) })
	}
	all.Wait()
}

// Sums has the SHA-256 of each batch of a view on a node, by rank/batch.
func Sums(n *Place, view string) (map[string]string, error) {
	out, err := n.Tool("sh", "-c", `cd "$0" && for r in rank-*; do sha256sum $r/batch-*[0-9] || exit; done`, n.Mount()+"/datasets/"+view)
	all := make(map[string]string)
	for line := range strings.Lines(out) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		all[name] = sum
	}
	return all, err
}

// Dirs are where each node has a view.
func (m *Team) Dirs(view string) (dirs []string) {
	for _, n := range m.Nodes {
		dirs = append(dirs, n.Mount()+"/datasets/"+view)
	}
	return dirs
}
