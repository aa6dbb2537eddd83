package state

import (
	"fmt"

	"rankfs/meta"
)

// A Role says what a node may do. Its token says it; a member may become an operator.
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
	noNodes   right = iota
	leaders         // the leader, on its own behalf
	owns            // the node that the command is about, and the leader
	members         // every node
	operators       // every operator
)
