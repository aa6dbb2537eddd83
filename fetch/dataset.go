package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"rankfs/fetch/index"
	"rankfs/meta"
)

// A Dataset is a source and the index of its records. Its methods may be called
// concurrently; the methods that look up records must not be called after Close. Under the
// lock a use of the source begins, or closed is set: so Detach, which then waits for all
// uses, misses none.
type Dataset struct {
	// Noticed is told the error of a read that finds the source changed. It is set before
	// the first read, or nil.
	Noticed func(error)

	src Source
	x   *index.Index

	closeSource, closeIndex sync.Once

	mu struct {
		sync.Mutex
		closed error          // why nothing can be read any more
		users  sync.WaitGroup // of src; none is added once closed
	}
}

// Attach joins a source and its index, which are the dataset's from then on.
// If the source is no longer what was indexed the error wraps meta.ErrStale;
// after any error both are still the caller's.
func Attach(ctx context.Context, src Source, x *index.Index) (*Dataset, error) {
	err := guard(nil, func() error { return src.Attach(ctx, x, x.Fingerprint()) })
	if err != nil {
		return nil, err
	}
	return &Dataset{src: src, x: x}, nil
}

// Close refuses new reads, waits for those under way, and closes the source
// and the index. A second Close does nothing.
func (d *Dataset) Close() error {
	err := d.Detach(os.ErrClosed)
	d.closeIndex.Do(func() { err = errors.Join(err, d.x.Close()) })
	return err
}

// Refuse has reads fail with why from now on, and waits for none.
func (d *Dataset) Refuse(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed == nil {
		d.mu.closed = why
	}
}

// Detach is Close for the source alone: the index stays open. Reads fail with
// why from then on.
func (d *Dataset) Detach(why error) (err error) {
	d.Refuse(why)
	d.closeSource.Do(func() {
		d.mu.users.Wait()
		err = d.src.Close()
	})
	return err
}

// use keeps the source open until the done that it returns is called.
func (d *Dataset) use() (done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed != nil {
		return nil, fmt.Errorf("dataset: %w", d.mu.closed)
	}
	d.mu.users.Add(1)
	return d.mu.users.Done, nil
}

// Hosts returns the hosts that hold a chunk, as the source knows them now.
func (d *Dataset) Hosts(i int) []string {
	if moving, ok := d.src.(interface{ Hosts(chunk int) []string }); ok {
		if hosts := moving.Hosts(i); hosts != nil {
			return hosts
		}
	}
	return d.x.Chunk(i).Hosts
}

// Check returns an error wrapping meta.ErrStale if the source is known to
// have changed. It is cheap.
func (d *Dataset) Check(ctx context.Context) error {
	done, err := d.use()
	if err != nil {
		return err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return err
	}
	return guard(nil, func() error { return d.src.Check(ctx) })
}

// Read fills dst with the bytes of the extents, one after another, all of
// them or an error: one wrapping meta.ErrStale if the source has changed,
// meta.ErrNoSpace if dst is a mapping and the kernel has no memory for its pages.
// After an error the contents of dst are undefined.
func (d *Dataset) Read(ctx context.Context, extents []index.Extent, dst []byte) error {
	done, err := d.use()
	if err != nil {
		return err
	}
	defer done()
	if err := d.admit(ctx, extents, int64(len(dst))); err != nil {
		return fmt.Errorf("read dataset: %w", err)
	}
	err = guard(dst, func() error { return d.src.Read(ctx, extents, dst) })
	if err == nil {
		return nil
	}
	if d.Noticed != nil && errors.Is(err, meta.ErrStale) {
		d.Noticed(err)
	}
	return fmt.Errorf("read dataset: %w", err)
}

// admit reports whether the extents are inside their files and come to
// exactly n bytes.
func (d *Dataset) admit(ctx context.Context, extents []index.Extent, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	want := n
	for _, e := range extents {
		if int64(e.File) >= int64(d.x.Files()) {
			return fmt.Errorf("extent in file %d %w: there are %d", e.File, meta.ErrInvalid, d.x.Files())
		}
		if size := d.x.FileSize(e.File); e.Off < 0 || e.Len < 0 || e.Off > size || e.Len > size-e.Off {
			return fmt.Errorf("extent at %d+%d %w: its file has %d bytes", e.Off, e.Len, meta.ErrInvalid, size)
		}
		if n -= e.Len; n < 0 {
			break
		}
	}
	if n != 0 {
		return fmt.Errorf("list of extents for a buffer of %d bytes %w: they have another length", want, meta.ErrInvalid)
	}
	return nil
}
