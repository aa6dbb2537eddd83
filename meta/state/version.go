package state

import "rankfs/meta"

// The versions of commands, of their form and their meaning, that this release
// reads and writes: its own and that of the release before. A cluster takes those
// of one version, and goes over to the next when all its nodes understand it.
const (
	Oldest  = 3
	Version = 4
)

// Signed is the version since which a command has its sender.
const Signed = 4

// signedIf is the version of something that is there since Signed, if it is there.
func signedIf(there bool) int {
	if there {
		return Signed
	}
	return Oldest
}

// Derived is the version since which a dataset can be made of others.
const Derived = 4

// Splits is the version since which a node looks through splits of sources for others.
const Splits = 4

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

// snapshotOf is the version of snapshots that goes with one of commands. Each has its own, so
// that a node which does not understand the commands does not take the snapshot for one that it
// can read.
func snapshotOf(version int) int { return version - 1 }
