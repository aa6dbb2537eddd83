package state

import (
	"slices"
	"time"

	"rankfs/meta"
)

// WishLife is how long a wish counts: the roots of some voters go from one node
// to the next within it, and what was said in another trouble is forgotten.
const WishLife = time.Hour

// Promote makes a node an operator: at once if an operator sends it, and otherwise
// when a majority of the voters has sent it, each for itself, within WishLife. That is
// the way back for a cluster whose only operator is lost. It gives root of the voters no new
// power: what a majority of the voters writes into the log is agreed on.
type Promote struct {
	Entry
	ID string
	Voters
}

func (c *Promote) check() error { return first(checkID(c.ID), c.Voters.check()) }

func (c *Promote) apply(s *state) (Result, error) {
	n, err := s.nodes().member(c.ID)
	if err != nil {
		return Result{}, err
	}
	by, err := s.nodes().member(c.By)
	switch {
	case err != nil:
		return Result{}, err
	case n.Role == Operator:
		return Result{}, nil
	case by.Role == Operator:
		return s.nodes().promote(s, c.ID)
	}
	if err := c.denies(by); err != nil {
		return Result{}, err
	}
	by.Wish, by.Wished = c.ID, s.Now
	s.nodes().put(s, by)
	if 2*len(s.nodes().wishing(c.ID, c.voters(), s.Now)) > len(c.voters()) {
		return s.nodes().promote(s, c.ID)
	}
	return Result{}, nil
}

// denies says why a node has no say in who is to be an operator.
func (c *Promote) denies(by Node) error {
	if by.Role == Operator || slices.Contains(c.voters(), by.ID) {
		return nil
	}
	return meta.Worded(meta.ErrDenied, "node %s is not allowed to say who is to be an operator: it has no vote; say it on an operator, or on most of the voters; see: rankfs node ls", by.ID)
}

// wishing are those of some nodes whose root has said lately that a node is to be an
// operator.
func (t *nodes) wishing(id string, among []string, now int64) (all []string) {
	for _, v := range among {
		if n, ok := t.get(v); ok && n.Wish == id && now-n.Wished < int64(WishLife) {
			all = append(all, v)
		}
	}
	return all
}

// promote makes a node an operator, and wishes for it are done.
func (t *nodes) promote(s *state, id string) (Result, error) {
	for _, n := range sorted(&t.table) {
		if n.Wish == id {
			n.Wish, n.Wished = "", 0
			t.put(s, n)
		}
	}
	return t.change(s, id, func(n *Node) { n.Role = Operator })
}

// checkWish reports whether a node in a snapshot can have its wish.
func (n *Node) checkWish(s *state) error {
	if n.Wish == "" {
		return must(n.Wished == 0, errWrong)
	}
	return first(checkID(n.Wish), must(s.version() >= Signed && n.Wished <= s.Now, errWrong))
}

// Wishing are those of some nodes whose root has said lately that a node is to be an
// operator.
func (m *Machine) Wishing(id string, among []string) []string {
	s, done := m.read()
	defer done()
	return s.nodes().wishing(id, among, s.Now)
}

// wayBack is the advice for a cluster where no operator is up to be asked.
func (t *nodes) wayBack() string {
	for _, n := range t.m {
		if n.Role == Operator && n.Up {
			return ""
		}
	}
	return "; none is up; if they are lost for good, make another, by root on most of the voters: rankfs node promote NODE"
}
