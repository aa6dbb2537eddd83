//go:build rankfs_release_before

package node

import "rankfs/meta/state"

// speaks is of a daemon for tests of upgrades: it understands no more than the
// release before did.
const speaks = state.Oldest
