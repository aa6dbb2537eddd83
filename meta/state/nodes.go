package state

import (
	"fmt"

	"rankfs/meta"
)

const (
	MaxNodes   = 4096
	MaxRemoved = 1 << 20 // nodes that there were: none may return
)

// nodes are the nodes of the cluster, and those that were.
type nodes struct {
	table[string, Node]
	removed table[string, string] // hosts
}

func (s *state) nodes() *nodes { return sectionOf[*nodes](s) }

func (t *nodes) put(s *state, n Node) {
	t.set(n.ID, n)
	s.changed.cluster = true
}

// member is a node of the cluster.
func (t *nodes) member(id string) (Node, error) {
	if n, ok := t.get(id); ok {
		return n, nil
	}
	if _, ok := t.removed.get(id); ok {
		return Node{}, fmt.Errorf("node %s %w: it was removed from the cluster", id, meta.ErrDenied)
	}
	return Node{}, meta.Worded(meta.ErrNotExist, "node %s does not exist in this cluster", id)
}

// standing counts those of some nodes that are up, as far as the leader has seen, and are not drained.
func (s *state) standing(ids []string) (n int) {
	for _, id := range ids {
		if is, err := s.nodes().member(id); err == nil && is.Up && !is.Drained {
			n++
		}
	}
	return n
}

// change replaces a node by what f makes of it.
func (t *nodes) change(s *state, id string, f func(*Node)) (Result, error) {
	n, err := t.member(id)
	if err != nil {
		return Result{}, err
	}
	old := n
	if f(&n); n != old {
		t.put(s, n)
	}
	return Result{}, nil
}

// knowsAll refuses nodes that were never admitted.
func (t *nodes) knowsAll(nodes Runs) error {
	for _, run := range nodes {
		if _, ok := t.removed.get(run.Node); ok {
			continue
		}
		if _, err := t.member(run.Node); err != nil {
			return err
		}
	}
	return nil
}

// Nodes are the nodes of the cluster, by id.
func (m *Machine) Nodes() []Node {
	s, done := m.read()
	defer done()
	return values(&s.nodes().table)
}

// Node is the node of that id.
func (m *Machine) Node(id string) (Node, bool) {
	s, done := m.read()
	defer done()
	return s.nodes().get(id)
}

// OnHost are the nodes whose host has this name. A host may have got another name since
// its node was admitted: by that it is found too, unless others were admitted by it.
func (m *Machine) OnHost(name string) (found []Node) {
	all := m.Nodes()
	for _, called := range []func(Node) string{
		func(n Node) string { return n.Host },
		func(n Node) string { return n.Called },
	} {
		for _, n := range all {
			if meta.SameHost(called(n), name) {
				found = append(found, n)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// HostOf is the host of a node that there is or was; empty if there was none.
func (m *Machine) HostOf(id string) string {
	s, done := m.read()
	defer done()
	if n, ok := s.nodes().get(id); ok {
		return n.Host
	}
	host, _ := s.nodes().removed.get(id)
	return host
}

// Removed reports whether there was a node of that id, for the last time.
func (m *Machine) Removed(id string) bool {
	s, done := m.read()
	defer done()
	_, ok := s.nodes().removed.get(id)
	return ok
}

// Admits reports whether a node may take part with the key of that fingerprint. One
// that is not known yet may: this machine can be behind.
func (m *Machine) Admits(id, key string) bool {
	s, done := m.read()
	defer done()
	if _, removed := s.nodes().removed.get(id); removed {
		return false
	}
	n, known := s.nodes().get(id)
	return !known || n.Key == "" || n.Key == key
}
