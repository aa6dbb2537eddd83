package state

import (
	"fmt"

	"rankfs/meta"
)

// Admit enters a node, and redeems the token that lets it in. The first node
// of a cluster needs none. A node that is in already, with the same key, is
// told so and uses up nothing.
type Admit struct {
	Entry
	TokenHash string `json:",omitempty"`
	Node      Node
	Speaks    int `json:",omitempty"` // the newest version of commands that it understands
}

func (c *Admit) since() int { return signedIf(c.Speaks != 0) }

func (c *Admit) check() error {
	if c.TokenHash != "" {
		if err := checkTokenHash(c.TokenHash); err != nil {
			return err
		}
	}
	return c.Node.check()
}

// nodeResult is what an Admit came to: the node as it is entered now.
type nodeResult struct{ Node *Node }

func (c *Admit) apply(s *state) (Result, error) {
	n, ok := s.nodes().get(c.Node.ID)
	if ok {
		if n.Key != c.Node.Key {
			return Result{}, meta.Worded(meta.ErrExist, "node %s exists already with another key: join with a new state directory", n.ID)
		}
		return Result{nodeResult{&n}}, nil
	}
	role, err := s.nodes().mayEnter(s, c)
	if err != nil {
		return Result{}, fmt.Errorf("admit node %s: %w", c.Node.ID, err)
	}
	n = c.Node
	n.Pool, n.PoolFull, n.Called = 0, false, ""
	n.Up, n.Drained, n.Admitted, n.Life, n.Role, n.Wish, n.Wished = true, false, s.Now, 0, role, "", 0
	s.nodes().put(s, n)
	return Result{nodeResult{&n}}, nil
}

// mayEnter says in which role a node enters, and redeems its token.
func (t *nodes) mayEnter(s *state, c *Admit) (Role, error) {
	_, removed := t.removed.get(c.Node.ID)
	switch {
	case s.Cluster == Cluster{}:
		return "", fmt.Errorf("%w: no cluster was founded; mount without --join to found one", meta.ErrDenied)
	case removed:
		return "", fmt.Errorf("%w: it was removed; join with a new state directory", meta.ErrDenied)
	case t.len() >= MaxNodes:
		return "", fmt.Errorf("%w: the cluster has %d nodes; remove one first", meta.ErrBusy, MaxNodes)
	case t.len()+t.removed.len() >= MaxRemoved:
		return "", fmt.Errorf("%w: the cluster has had %d nodes; found another", meta.ErrBusy, MaxRemoved)
	case s.version() >= Signed && c.Speaks < s.version():
		return "", fmt.Errorf("%w: its rankfs is older than the cluster's: install the release that the other nodes have", meta.ErrDenied)
	case t.len() == 0 && s.version() >= Signed:
		return Operator, nil
	case t.len() == 0:
		return "", nil
	}
	return s.tokens().redeem(c.TokenHash)
}
