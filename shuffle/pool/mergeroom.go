package pool

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
)

// A mergeRoom bounds the bytes that parts of this node take while they are merged: to a
// quarter of what the pool may have in memory, or the least that one part takes.
type mergeRoom struct {
	bytes int64
	is    *semaphore.Weighted
}

func newMergeRoom(ram int64) mergeRoom {
	n := max(1, ram/4)
	return mergeRoom{n, semaphore.NewWeighted(n)}
}

// Of a run that is merged in portions there are three: one that is merged, the one before it,
// which may have the record that was taken last, and one that is fetched meanwhile.
const (
	portionsEach = 3
	leastPortion = 16 << 10
	mostPortion  = 4 << 20
)

// large is how many bytes a part may take that is merged at once; and a larger one in portions,
// unless it has very many runs.
func (r mergeRoom) large() int64 { return max(1, r.bytes/4) }

// portion is how large they are of so many runs.
func (r mergeRoom) portion(runs int) int64 {
	return min(mostPortion, max(leastPortion, r.large()/int64(portionsEach*max(1, runs))))
}

func (r mergeRoom) take(ctx context.Context, n int64) error {
	return r.is.Acquire(ctx, min(n, r.bytes))
}
func (r mergeRoom) give(n int64) { r.is.Release(min(n, r.bytes)) }

// hold takes that of the room, until give is called, for so many bytes that a part takes.
func (p *merger) hold(ctx context.Context, n int64) (give func(), err error) {
	room := p.pool.merging
	if err := room.take(ctx, n); err != nil {
		return nil, fmt.Errorf("part %d, whose merge waits for others: %w", p.Number, err)
	}
	return func() { room.give(n) }, nil
}

// memory is memory beside the heap.
func (p *merger) memory(n int64) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory to merge part %d in, %d bytes: %w", p.Number, n, err)
	}
	return b, nil
}

// guard calls f, which reads what is mapped.
func (p *merger) guard(f func() error) error {
	err := fault.Guard(f)
	if at := new(fault.Error); errors.As(err, &at) {
		err = fmt.Errorf("merge part %d: %w (%w)", p.Number, unix.EIO, err)
	}
	return err
}
