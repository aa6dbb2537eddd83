package pool

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

// inMemory calls f with the pieces of some parts of the same maps, which are checked, in
// memory beside the heap.
func (p *Part) inMemory(ctx context.Context, parts []*Part, f func(pieces [][][]byte) error) error {
	n := int64(0)
	for _, one := range parts {
		n += one.begins()[len(one.pieces)]
	}
	if n == 0 {
		return f(make([][][]byte, len(parts)))
	}
	room := p.pool.merging
	if err := room.take(ctx, n); err != nil {
		return fmt.Errorf("part %d, whose merge waits for others: %w", p.Number, err)
	}
	defer room.give(n)
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("memory to merge part %d in, %d bytes: %w", p.Number, n, err)
	}
	defer unmap(b)
	all, at := make([][][]byte, len(parts)), int64(0)
	for i, one := range parts {
		begin := one.begins()
		end := at + begin[len(one.pieces)]
		if err := one.gather(ctx, b[at:end]); err != nil {
			return err
		}
		for k := range one.pieces {
			all[i] = append(all[i], b[at+begin[k]:at+begin[k+1]:at+begin[k+1]])
		}
		at = end
	}
	return f(all)
}

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
