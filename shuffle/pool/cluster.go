package pool

import (
	"context"

	"rankfs/meta/state"
	"rankfs/shuffle/quota"
)

// State is the state of the cluster, as far as this node knows it.
type State interface {
	Jobs
	PoolTotals() map[uint64]state.PoolTotal // by the job's number
	Committed
	BlobNames
	quota.State
	Changes
	Nodes
}

// Jobs are the jobs that the cluster has, and their stages.
type Jobs interface {
	PoolJobs() []state.PoolJob
	PoolJob(name string) (state.PoolJob, bool)
	Stages(job uint64) []state.PoolStage
	Stage(job uint64, name string) (state.PoolStage, bool)
}

// Committed are the maps of stages that have won, as the cluster knows them.
type Committed interface {
	Commit(stage, number uint64) (state.Commit, bool)
	Commits(stage uint64) state.Maps
}

// BlobNames are the blobs of a stage, and the maps that they are in, as the cluster knows them.
type BlobNames interface {
	Blob(stage uint64, name string) (state.Blob, state.Commit, bool)
	Blobs(stage uint64, dir string) []state.Blob
}

// Nodes are those of the cluster, as far as this one knows.
type Nodes interface {
	HostOf(node string) string // empty if it is not known
	Node(id string) (state.Node, bool)
	Version() int // of the commands that all of them understand
}

// Changes says when there is something new.
type Changes interface {
	Changed() <-chan struct{}
	ClusterChanged() <-chan struct{} // not for maps and blobs that come and go
}

// A Cluster changes the state, by what its nodes agree on.
type Cluster interface {
	Self() string // the node that this is
	Do(ctx context.Context, c state.Command) (state.Result, error)
	// Agree is Do, but this node may not know yet what it has come to.
	Agree(ctx context.Context, c state.Command) (state.Result, error)
}

// A Member is this node as one of the cluster: what it knows of that, and whether it is one.
type Member interface {
	// Ready waits until this node knows what the cluster knew when it was asked.
	Ready(ctx context.Context) error
	// Lasts has all that this node knows outlive a power failure.
	Lasts() error
	// Removed reports whether this node was taken out, for good.
	Removed() bool
}
