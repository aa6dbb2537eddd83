package state

import (
	"fmt"
	"strings"

	"rankfs/meta"
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
	by := c.entry()
	if s.nodes().len() == 0 {
		if by.Leads {
			return nil // the node that founds the cluster is not of it yet
		}
		return fmt.Errorf("node %s %w: no cluster was founded", by.By, meta.ErrDenied)
	}
	n, err := s.nodes().member(by.By)
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
		return meta.Worded(meta.ErrDenied, "node %s is not allowed to do this, which is for operators: it is a member of the cluster; do it on an operator, as %s%s; see: rankfs node ls",
			n.ID, s.nodes().someOperators(), s.nodes().wayBack())
	case right == owns:
		return meta.Worded(meta.ErrDenied, "node %s is not allowed to speak for node %s", n.ID, about)
	}
	return meta.Worded(meta.ErrDenied, "node %s is not allowed to do this, which is for the leader", n.ID)
}

// someOperators are hosts of operators, those that are up first.
func (t *nodes) someOperators() string {
	var up, down []string
	for id, n := range sorted(&t.table) {
		switch {
		case n.Role != Operator:
		case n.Up:
			up = append(up, fmt.Sprintf("%s (%s)", n.Host, id))
		default:
			down = append(down, fmt.Sprintf("%s (%s)", n.Host, id))
		}
	}
	all := append(up, down...)
	return strings.Join(all[:min(len(all), maxNamed)], ", ")
}

// Denies says why a node may not send a command, whatever that is about, as far as this
// machine knows. Where that depends on who votes the command has the voters.
func (m *Machine) Denies(node string, c Command) error {
	version := m.Version()
	if version < Signed {
		return nil
	}
	Sign(c, Sender{Node: node}, version)
	if err := m.May(c); err != nil {
		return err
	}
	p, is := c.(interface{ denies(by Node) error })
	if by, known := m.Node(node); is && known {
		return p.denies(by)
	}
	return nil
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
