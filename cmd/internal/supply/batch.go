package supply

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// copyBytes is how much is copied between two looks at the context.
const copyBytes = 16 << 20

// A loaded batch lies in the mapped file.
type loaded struct {
	bytes int64
	last  bool // the rank has no other after it; only known where that is asked for
}

// load brings a batch into the mapped file, and its size. Opening and reading
// may hang in a dead mount, where nothing can interrupt them, and to hand each
// batch to a second goroutine doubles the round trip. So the copy runs here,
// and if it is overdue, another goroutine calls late and acts for the pair from
// then on; load is false once that has happened, and its caller must leave.
func (p *pair) load(ctx context.Context, sequence uint64, late func(error)) (loaded, error, bool) {
	if err := p.awaitOverdue(ctx); err != nil {
		return loaded{}, err, true
	}
	var over atomic.Bool
	returned := make(chan struct{})
	defer close(returned)
	timer := time.AfterFunc(p.timeout, func() {
		if over.CompareAndSwap(false, true) {
			p.hung = returned
			late(fmt.Errorf("the mount did not answer within %s", meta.FormatTime(p.timeout)))
		}
	})
	stop := context.AfterFunc(ctx, func() { timer.Reset(parting) })
	b, err := p.copyBatch(ctx, sequence)
	stop()
	timer.Stop()
	return b, err, over.CompareAndSwap(false, true)
}

// awaitOverdue waits for a copy that was overdue: there is one at most.
func (p *pair) awaitOverdue(ctx context.Context) error {
	if p.hung == nil {
		return nil
	}
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-p.hung:
		p.hung = nil
		return nil
	case <-timer.C:
		return fmt.Errorf("the mount still holds an earlier read after another %s", meta.FormatTime(p.timeout))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copyBatch reads a batch into the mapping by pread, as one rank reads its
// file. The kernel copies once, page cache to shared page.
func (p *pair) copyBatch(ctx context.Context, sequence uint64) (b loaded, err error) {
	path := p.batch(sequence)
	fd, err := openFile(path, unix.O_RDONLY)
	if err != nil {
		return b, p.missing(sequence, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return b, fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return b, fmt.Errorf("%s is not a regular file", path)
	}
	if err := p.mapped.hold(st.Size); err != nil {
		return b, err
	}
	for at := int64(0); at < st.Size; {
		n, err := unix.Pread(fd, p.mapped.data[at:min(at+copyBytes, st.Size)], at)
		switch {
		case ctx.Err() != nil:
			return b, ctx.Err()
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EFAULT):
			return b, fmt.Errorf("mapped file %s: no room, or cut by another program: enlarge its tmpfs", p.mapped.path)
		case err != nil:
			return b, fmt.Errorf("read %s: %w", path, err)
		case n == 0:
			return b, fmt.Errorf("read %s: %d bytes instead of %d", path, at, st.Size)
		default:
			at += int64(n)
		}
	}
	return loaded{st.Size, p.once && !p.has(sequence+1)}, nil
}
