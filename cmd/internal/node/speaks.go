//go:build !rankfs_release_before

package node

import "rankfs/meta/state"

// speaks is the newest version of the cluster's commands that a daemon
// understands.
const speaks = state.Version
