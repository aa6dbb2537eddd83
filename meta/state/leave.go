package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// Drain says whether a node gets new work.
type Drain struct {
	Entry
	ID      string
	Drained bool
	Voters
}

func (c *Drain) check() error { return first(checkID(c.ID), c.Voters.check()) }

func (c *Drain) Leaver() string { return c.ID }

func (c *Drain) apply(s *state) (Result, error) {
	if _, err := s.nodes().letsGo(c); err != nil {
		return Result{}, err
	}
	return s.nodes().change(s, c.ID, func(n *Node) { n.Drained = c.Drained })
}

// Remove takes a node out of the cluster for ever. Its claims stay, and its host
// is remembered, so that plans that name it stay what they are; the last node
// cannot be removed.
type Remove struct {
	Entry
	ID string
	Voters
}

func (c *Remove) check() error { return first(checkID(c.ID), c.Voters.check()) }

func (c *Remove) Leaver() string { return c.ID }

func (c *Remove) apply(s *state) (Result, error) {
	if _, ok := s.nodes().removed.get(c.ID); ok {
		return Result{}, nil
	}
	n, err := s.nodes().member(c.ID)
	if err != nil {
		return Result{}, err
	}
	if s.nodes().len() == 1 {
		return Result{}, meta.Worded(meta.ErrBusy, "node %s is busy now: it is the last of the cluster", c.ID)
	}
	if err := s.nodes().spares(n); err != nil {
		return Result{}, err
	}
	if _, err := s.nodes().letsGo(c); err != nil {
		return Result{}, err
	}
	s.nodes().drop(c.ID)
	s.nodes().removed.set(c.ID, n.Host)
	for one := range having[interface{ nodeGone(*state, string) }](s) {
		one.nodeGone(s, c.ID)
	}
	s.changed.cluster = true
	return Result{}, nil
}

// spares says why the cluster cannot do without a node: it is the only operator.
func (t *nodes) spares(n Node) error {
	if n.Role != Operator {
		return nil
	}
	for id, other := range t.m {
		if id != n.ID && other.Role == Operator {
			return nil
		}
	}
	return meta.Worded(meta.ErrBusy, "node %s is busy now: it is the only operator; make another one first: rankfs node promote NODE", n.ID)
}

// letsGo says why the cluster cannot do without the vote of a node: those of the
// other nodes that are up would be no majority. It counts the votes of removed nodes,
// too, as a node may be gone before its vote is. If it can, rest are the voters that are
// up besides; none if no vote is lost.
func (t *nodes) letsGo(c Leave) (rest []string, err error) {
	id, voters := c.Leaver(), c.voters()
	n, ok := t.get(id)
	if d, is := c.(*Drain); is && (n.Drained || !d.Drained) {
		return nil, nil
	}
	if !ok || !slices.Contains(voters, id) {
		return nil, nil
	}
	left := 0
	for _, v := range voters {
		switch n, ok := t.get(v); {
		case !ok:
			left++
		case v != id && n.Up:
			rest = append(rest, v)
		}
	}
	up := len(rest)
	switch {
	case len(voters) == 1:
		err = fmt.Errorf("node %s %w: it has the only vote, and no node could lead without it; have others join first, so that three vote", id, meta.ErrBusy)
	case 2*up <= len(voters) && 2*(up+left) > len(voters):
		err = fmt.Errorf("node %s %w: a node that was removed is a voter still, as the votes change one by one; try again in a moment", id, meta.ErrBusy)
	case 2*up <= len(voters) && up == len(voters)-1 && t.couldVote(voters):
		err = fmt.Errorf("node %s %w: only %d nodes vote as long as another is being given a vote; try again in a moment", id, meta.ErrBusy, len(voters))
	case 2*up <= len(voters) && up == len(voters)-1:
		err = fmt.Errorf("node %s %w: only %d nodes vote, and without it the other would be no majority; have another join first, so that three vote",
			id, meta.ErrBusy, len(voters))
	case 2*up <= len(voters):
		err = fmt.Errorf("node %s %w: of %d voters only %d would be up without it, which is no majority; start those that are down, or remove them first; see: rankfs node ls",
			id, meta.ErrBusy, len(voters), up)
	}
	return rest, err
}

// couldVote reports whether a node that is up and stays has no vote yet.
func (t *nodes) couldVote(voters []string) bool {
	for id, n := range t.m {
		if n.Up && !n.Drained && !slices.Contains(voters, id) {
			return true
		}
	}
	return false
}

// LetsGo says why a node cannot go, as far as this machine knows; the machines that apply
// it decide. If it can, rest are the other voters that are taken to be up, if they matter.
func (m *Machine) LetsGo(c Leave) (rest []string, err error) {
	s, done := m.read()
	defer done()
	return s.nodes().letsGo(c)
}
