package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"rankfs/test/cluster"
)

// A Team is daemons on several hosts, of one cluster.
type Team struct {
	T     testing.TB // who is told what goes wrong
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

// Token is one made by a node, to be used so many times. Whom it lets in is an
// operator, so that tests may ask anything of any node.
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
		n.finish()
		return nil
	})
	// None is ready before a majority is there.
	if err = errors.Join(err, m.each(func(n *Place) error { return n.Try() })); err != nil {
		m.T.Fatal(err)
	}
}

func (m *Team) each(do func(*Place) error) error {
	errs := make([]error, len(m.Nodes))
	var all sync.WaitGroup
	for i, n := range m.Nodes {
		all.Go(func() { errs[i] = do(n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Await waits until a dataset is everywhere.
func (m *Team) Await(name string) {
	m.T.Helper()
	for _, n := range m.Nodes {
		Until(m.T, waitTime, "the dataset is there", func() bool {
			_, err := n.Tool("test", "-d", n.Mount()+"/datasets/"+name)
			return err == nil
		})
	}
}

// Leader is the node that leads, and the others.
func (m *Team) Leader() (leader *Place, others []*Place) {
	m.T.Helper()
	for _, n := range m.Nodes {
		var s struct{ Self, Leader string }
		text := n.Do("--json", "node", "ls")
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			m.T.Fatalf("%v: %s", err, text)
		}
		if s.Self == s.Leader {
			leader = n
		} else {
			others = append(others, n)
		}
	}
	if leader == nil {
		m.T.Fatal("nobody leads")
	}
	return leader, others
}

// Dirs are where each node has a view.
func (m *Team) Dirs(view string) (dirs []string) {
	for _, n := range m.Nodes {
		dirs = append(dirs, n.Mount()+"/datasets/"+view)
	}
	return dirs
}
