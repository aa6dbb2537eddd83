package fetch

import (
	"context"

	"rankfs/fetch/hdfs"
	"rankfs/fetch/index"
	"rankfs/fetch/lmdb"
	"rankfs/fetch/stage"
)

// An Env holds what all sources of a process share. Without one, an LMDB database
// is stale as soon as a writer commits to it, and neither HDFS nor the shuffle pool can be
// reached.
type Env struct {
	Holds *lmdb.Holds
	HDFS  *hdfs.Clusters
	Pool  stage.Pool // of which this process need not keep anything
	Mount string     // what this process serves itself; no source may touch it; empty: none
	// Base finds a dataset of the cluster, for one that is made of it.
	Base func(name string) (Base, error)
}

// A Base is one version of a dataset that another one is made of.
type Base struct {
	Version string // identifies its index, by the hash of that
	Source  string // its URI
	Index   *index.Index
	Keep    any                             // without which Index may be closed
	Check   func(ctx context.Context) error // says why it cannot be read here, as Source.Check does
}
