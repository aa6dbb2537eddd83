package state

import (
	"fmt"

	"rankfs/meta"
)

// Health is the state of a node in one of its lives, as the leader saw it; of a life that is
// over it says nothing. What a node that is down held of queues is for others to
// take.
type Health struct {
	Entry
	ID   string
	Life uint64 `json:",omitempty"`
	Up   bool
}

func (c *Health) about(*state) string { return c.ID }

func (c *Health) check() error { return checkID(c.ID) }

func (c *Health) apply(s *state) (Result, error) {
	n, err := s.nodes().member(c.ID)
	if err != nil || n.Life != c.Life {
		return Result{}, err
	}
	if !c.Up {
		s.queues().returnLeases(s, c.ID, Down)
	}
	return s.nodes().change(s, c.ID, func(n *Node) { n.Up = c.Up })
}

// Begin says that a node's daemon was started: it is up, it is reached at Addr,
// and of what it held of queues before it has nothing. Life is a number that the
// daemon has drawn. Called is the name of its host, if that is not the one that the
// node was admitted by. Sent again, it says where the node is and nothing else.
type Begin struct {
	Entry
	ID, Addr string
	Life     uint64
	Called   string `json:",omitempty"`
}

func (c *Begin) since() int { return signedIf(c.Called != "") }

func (c *Begin) about(*state) string { return c.ID }

func (c *Begin) check() error {
	if c.Life == 0 {
		return fmt.Errorf("life 0 of node %s %w", shorten(c.ID), meta.ErrInvalid)
	}
	return first(checkID(c.ID), checkText("address", c.Addr, maxText), checkCalled(c.Called))
}

// checkCalled is for a name that need not be there.
func checkCalled(name string) error {
	if name == "" {
		return nil
	}
	return checkText("host", name, maxText)
}

func (c *Begin) apply(s *state) (Result, error) {
	n, err := s.nodes().member(c.ID)
	if err != nil {
		return Result{}, err
	}
	again := n.Life == c.Life
	if !again {
		s.queues().returnLeases(s, c.ID, Down)
	}
	return s.nodes().change(s, c.ID, func(n *Node) {
		n.Addr, n.Life, n.Up, n.Called = c.Addr, c.Life, n.Up || !again, c.Called
	})
}

// Move says that a node is reached elsewhere. Its host stays the same: plans go
// by it.
type Move struct {
	Entry
	ID, Addr string
}

func (c *Move) about(*state) string { return c.ID }

func (c *Move) check() error {
	return first(checkID(c.ID), checkText("address", c.Addr, maxText))
}

func (c *Move) apply(s *state) (Result, error) {
	return s.nodes().change(s, c.ID, func(n *Node) { n.Addr = c.Addr })
}
