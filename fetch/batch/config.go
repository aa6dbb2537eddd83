package batch

import (
	"context"

	"rankfs/fetch"
	"rankfs/fetch/peers"
	"rankfs/shuffle/plan"
)

// A Config describes the source of a version.
type Config struct {
	Source string // the URI
	Root   string // that of the source which has the bytes, if it is made of another dataset
	Origin string // the node that indexed it
	Hash   string // of the index, in hex
	Env    *fetch.Env
	Owners *plan.Owners
	Ask    Ask
}

// An Ask asks another node whether a dataset's source is unchanged, as Source.Data of that
// node says. The error wraps meta.ErrStale if it is not. One that is nil asks no node.
type Ask func(ctx context.Context, node string, dataset peers.ID) error
