package state

import (
	"fmt"
	"slices"

	"rankfs/meta"
)

// The versions of commands, of their form and their meaning, that this release
// reads and writes: its own and that of the release before. A cluster takes those
// of one version, and goes over to the next when all its nodes understand it.
const (
	Oldest  = 3
	Version = 4
)

// Signed is the version since which a command has its sender.
const Signed = 4

// upgrade is the advice in the error of a node that reads what a later release wrote.
const upgrade = "this node's rankfs is older than the cluster's: upgrade it to the release that the other nodes have"

// canRead says why something of a version cannot be read.
func canRead(version, oldest, newest int) error {
	switch {
	case version > newest:
		return meta.Worded(meta.ErrUnavailable, "of version %d, and this release reads up to %d: %s", version, newest, upgrade)
	case version < oldest:
		return meta.Worded(meta.ErrUnavailable, "of version %d, and this release reads from %d on: "+
			"it was written more than one release ago: start the releases between on this node, one after the other",
			version, oldest)
	}
	return nil
}

// versionOf is the version that a command is of. It refuses one that has
// something that its version does not know.
func versionOf(c Command) (int, error) {
	if u, ok := c.(*Upgrade); ok {
		return max(u.To, Signed), nil
	}
	said := versionSaid(c)
	if needs := max(c.version(), known.of(c).since); needs > said {
		return 0, fmt.Errorf("command of version %d %w: nobody has signed it", needs, meta.ErrInvalid)
	}
	return said, nil
}

// versionSaid is the version by what the leader notes.
func versionSaid(c Command) int {
	if c.sender().Node != "" {
		return Signed
	}
	return Oldest
}

func (h *header) version() int { return max(h.Version, Oldest) }

// snapshotOf is the version of snapshots that goes with one of commands.
func snapshotOf(version int) uint32 {
	if version >= Signed {
		return signedSnapshot
	}
	return oldestSnapshot
}

func (s *state) snapshotVersion() uint32 { return snapshotOf(s.version()) }

// Speaks is the newest version of commands that the machine understands.
func (m *Machine) Speaks() int { return m.speaks }

// Version is the version of the commands that the machine takes, as far as it has
// come.
func (m *Machine) Version() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.state.version()
}

// mayCome says why a command is not for this state: it is of another version, or
// from a node that may not send it. A leader may have encoded it before it knew that
// the cluster has gone over; so it is sent again.
func (s *state) mayCome(c Command) error {
	if _, ok := c.(*Found); ok && s.Cluster == (Cluster{}) {
		return nil
	}
	said := versionSaid(c)
	if _, ok := c.(*Upgrade); !ok && said != s.version() {
		return fmt.Errorf("command of version %d %w: the cluster takes those of version %d; try again", said, meta.ErrUnavailable, s.version())
	}
	if said < Signed {
		return nil
	}
	return s.allows(c)
}

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

func (c *Upgrade) version() int { return c.To }

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
		s.setNode(n)
	}
	s.changed.cluster = true
	return Result{}, nil
}
