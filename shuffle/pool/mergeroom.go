package pool

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
	"rankfs/shuffle/turns"
)

// A mergeRoom bounds the bytes that parts of this node take while they are merged: to a
// quarter of what the pool may have in memory, or the least that one part takes.
type mergeRoom struct {
	bytes int64
	*turns.Shares
}

func newMergeRoom(ram int64) mergeRoom {
	n := max(1, ram/4)
	return mergeRoom{n, turns.New(n)}
}

// Of a run that is merged in portions there are three: one that is merged, the one before it,
// which may have the record that was taken last, and one that is fetched meanwhile.
const (
	portionsEach = 3
	leastPortion = 16 << 10
	mostPortion  = 4 << 20
)

// large is the size up to which a part is merged at once; a larger one is merged in portions,
// unless it has very many runs.
func (r mergeRoom) large() int64 { return max(1, r.bytes/4) }

// portion is the size of a portion of so many runs.
func (r mergeRoom) portion(runs int) int64 {
	return min(mostPortion, max(leastPortion, r.large()/int64(portionsEach*max(1, runs))))
}

// hold takes that of the room, until give is called, for so many bytes that a part takes.
func (p *merger) hold(ctx context.Context, n int64) (give func(), err error) {
	return p.waits(p.pool.merging.Take(ctx, p.by, n, n))
}

// work waits for a processor to merge pieces with, until give is called.
func (p *merger) work(ctx context.Context, bytes int64) (give func(), err error) {
	return p.waits(p.pool.local.work.Take(ctx, p.by, 1, bytes))
}

func (p *merger) waits(give func(), err error) (func(), error) {
	if err != nil {
		err = fmt.Errorf("part %d, whose merge waits for others: %w", p.Number, err)
	}
	return give, err
}

// besideHeap is memory that the garbage collector does not know.
func besideHeap(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

// memory is memory beside the heap.
func (p *merger) memory(n int64) ([]byte, error) {
	b, err := besideHeap(int(n))
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
