package pool

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// A mergeRoom bounds the bytes that parts of this node take while they are merged: to a
// quarter of what the pool may have in memory, or one part.
type mergeRoom struct {
	bytes int64
	is    *semaphore.Weighted
}

func newMergeRoom(ram int64) mergeRoom {
	n := max(1, ram/4)
	return mergeRoom{n, semaphore.NewWeighted(n)}
}

func (r mergeRoom) take(ctx context.Context, n int64) error {
	return r.is.Acquire(ctx, min(n, r.bytes))
}
func (r mergeRoom) give(n int64) { r.is.Release(min(n, r.bytes)) }
