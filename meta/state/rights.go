package state

import (
	"fmt"
	"strings"

	"rankfs/meta"
)

// A Role is what a node may do. Its token says it, for good.
type Role string

const (
	// Member is a node that reads: it speaks for itself alone, and may register
	// datasets and refresh them, plan, and begin queues.
	Member Role = "member"
	// Operator is a node that may decide on others as well: it makes tokens,
	// drains and removes, and changes settings.
	Operator Role = "operator"
)

// checkRole reports whether r can be a role in commands of that version.
func checkRole(r Role, version int) error {
	if version < Signed && r == "" || version >= Signed && (r == Member || r == Operator) {
		return nil
	}
	return fmt.Errorf("role %q %w: use %s or %s", shorten(string(r)), meta.ErrInvalid, Member, Operator)
}

// A right says which nodes may send a command.
type right uint8

const (
	nobodys   right = iota
	leaders         // the leader, on its own behalf
	owns            // the node that the command is about, and the leader
	members         // every node
	operators       // every operator
)

// rightTo returns the right to send a command and, where that depends on the node that
// the command is about, that node.
func (s *state) rightTo(c Command) (r right, about string) {
	if c, is := c.(interface{ about(*state) string }); is {
		about = c.about(s)
	}
	return known.of(c).by, about
}

// allows says why the sender of a command may not send it, if so.
func (s *state) allows(c Command) error {
	by := c.sender()
	if s.nodes().len() == 0 {
		if by.Leads {
			return nil // the node that founds the cluster is not of it yet
		}
		return fmt.Errorf("node %s %w: no cluster was founded", by.Node, meta.ErrDenied)
	}
	n, err := s.member(by.Node)
	if err != nil {
		return fmt.Errorf("sender %w: %w", meta.ErrDenied, hide(err))
	}
	right, about := s.rightTo(c)
	switch {
	case right == leaders && by.Leads,
		right == owns && (by.Leads || about == n.ID),
		right == members,
		right == operators && n.Role == Operator:
		return nil
	case right == operators:
		return meta.Worded(meta.ErrDenied, "node %s is not allowed to do this, which is for operators: it is a member of the cluster; do it on an operator, as %s; see: rankfs node ls",
			n.ID, s.someOperators())
	case right == owns:
		return meta.Worded(meta.ErrDenied, "node %s is not allowed to speak for node %s", n.ID, about)
	}
	return meta.Worded(meta.ErrDenied, "node %s is not allowed to do this, which is for the leader", n.ID)
}

// mostNamed bounds the operators that an error refers its reader to.
const mostNamed = 3

// someOperators are hosts of operators, those that are up first.
func (s *state) someOperators() string {
	var up, down []string
	for id, n := range sorted(&s.nodes().table) {
		switch {
		case n.Role != Operator:
		case n.Up:
			up = append(up, fmt.Sprintf("%s (%s)", n.Host, id))
		default:
			down = append(down, fmt.Sprintf("%s (%s)", n.Host, id))
		}
	}
	all := append(up, down...)
	return strings.Join(all[:min(len(all), mostNamed)], ", ")
}

// spares says why the cluster cannot do without a node: it is the only operator.
func (s *state) spares(n Node) error {
	if n.Role != Operator {
		return nil
	}
	for id, other := range s.nodes().m {
		if id != n.ID && other.Role == Operator {
			return nil
		}
	}
	return meta.Worded(meta.ErrBusy, "node %s is busy now: it is the only operator; let another in first: rankfs token create --role operator", n.ID)
}

// May says why the sender of a command may not send it, as far as this machine
// knows. The machines that apply it decide.
func (m *Machine) May(c Command) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if versionSaid(c) < Signed {
		return nil
	}
	return m.mu.state.allows(c)
}
