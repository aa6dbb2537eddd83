package state

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"rankfs/meta"
)

// Upgrade has the cluster take commands of the version To from now on, and no
// others. Nodes are those that understand it; the cluster has no other nodes. The command
// is of the version To itself, so a machine that does not understand that stops.
type Upgrade struct {
	Entry
	To    int
	Nodes []string
}

// A migration is what a cluster changes when it goes over to a version from the one before,
// beside the commands that it takes. What it has no row for stays as it is.
type migration struct {
	to      int
	migrate func(*state)
	tells   string // what operators have to know of it
}

// migrations are in the order of their versions. A row is there until no release reads the
// version before.
var migrations = []migration{
	{4, beginRoles, "tokens made before let no node in any more, and all nodes there are are operators"},
}

// beginRoles: tokens were kept as they are sent, so they are void from here on. Nodes had
// no roles, and might do what operators may; they become operators.
func beginRoles(s *state) {
	for hash := range sorted(&s.tokens().table) {
		s.tokens().drop(hash)
	}
	s.tokens().spent = 0
	for _, n := range sorted(&s.nodes().table) {
		n.Role = Operator
		s.nodes().put(s, n)
	}
}

func (c *Upgrade) check() error {
	if c.To < Signed || c.To > math.MaxUint8 || len(c.Nodes) > MaxNodes || c.By == "" {
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
	for m := range c.migrations(s.version()) {
		m.migrate(s)
	}
	s.Version = c.To
	s.changed.cluster = true
	return Result{}, nil
}

// migrations are those on the way from a version.
func (c *Upgrade) migrations(from int) iter.Seq[migration] {
	return func(yield func(migration) bool) {
		for _, m := range migrations {
			if from < m.to && m.to <= c.To && !yield(m) {
				return
			}
		}
	}
}

// Tells says what operators have to know of a cluster that has gone over from a version.
func (c *Upgrade) Tells(from int) (all []string) {
	for m := range c.migrations(from) {
		all = append(all, m.tells)
	}
	return all
}
