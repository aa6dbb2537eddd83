package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// Upgrade has the cluster take commands of the version To from now on, and no
// others. Nodes are those that understand it; the cluster has no other nodes.
//
// To version 4: until then tokens were kept as they are sent, so they are void from
// here on. Nodes had no roles, and might do what operators may; they become operators.
type Upgrade struct {
	Entry
	To    int
	Nodes []string
}

func (c *Upgrade) check() error {
	if c.To < Signed || c.To > Version || len(c.Nodes) > MaxNodes || c.By == "" {
		return fmt.Errorf("upgrade of %d nodes to version %d %w", len(c.Nodes), c.To, meta.ErrInvalid)
	}
	for _, id := range c.Nodes {
		if err := checkID(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *Upgrade) apply(s *state) (Result, error) {
	if c.To <= s.version() {
		return Result{}, nil
	}
	for id := range s.nodes().m {
		if !slices.Contains(c.Nodes, id) {
			return Result{}, meta.Worded(meta.ErrBusy, "upgrade to version %d has to wait: the nodes of the cluster have changed", c.To)
		}
	}
	s.Version = c.To
	for hash := range sorted(&s.tokens().table) {
		s.tokens().drop(hash)
	}
	s.tokens().spent = 0
	for _, n := range sorted(&s.nodes().table) {
		n.Role = Operator
		s.nodes().put(s, n)
	}
	s.changed.cluster = true
	return Result{}, nil
}
