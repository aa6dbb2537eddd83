package lmdb

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/warm"
	"rankfs/meta"
)

// A reader copies values out of a snapshot's file: from a mapping, where
// package warm says that it is cached, by reading otherwise. The caller turns the
// fault of a mapped file that was truncated into an error.
//
// Values of one leaf share a read of it. A request reads pages without waiting until
// one is not cached (the kernel says so; nothing is guessed from times). Then it has
// the kernel begin to read all pages that follow, so that the disk has a full queue,
// and waits for each in turn.
type reader struct {
	fd         int
	name       string
	size, page int64
	warm       *warm.File
}

func newReader(file *os.File, name string, size, page int64) *reader {
	fd := int(file.Fd())
	r := &reader{fd, name, size, page, warm.New(fd, size)}
	// Or a miss would read much more than the value. An error is no matter.
	_ = unix.Fadvise(r.fd, 0, 0, unix.FADV_RANDOM)
	return r
}

// A request is the state of one Read.
type request struct {
	*reader
	flags  int    // unix.RWF_NOWAIT until something was not cached
	number int64  // of the page in leaf, or 0
	leaf   []byte // the last leaf that values were copied from
	header [pageHeader]byte
}

var errNotCached = errors.New("not in the page cache")

func (r *reader) read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := r.check(extents, int64(len(dst))); err != nil {
		return err
	}
	use := r.warm.Begin()
	defer use.Done()
	if use.Data != nil {
		return r.copyMapped(ctx, use.Data, extents, dst)
	}
	q := &request{reader: r, flags: unix.RWF_NOWAIT}
	for i, e := range extents {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := q.value(e, dst[:e.Len])
		if err == errNotCached {
			r.ask(extents[i:])
			q.flags = 0
			err = q.value(e, dst[:e.Len])
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r.name, err)
		}
		dst = dst[e.Len:]
	}
	return nil
}

// copyMapped copies from a mapping of the file. Each value is far away in memory.
// So the pages of some are touched together before anything is done with them:
// the processor then waits for all of them at once.
func (r *reader) copyMapped(ctx context.Context, data []byte, extents []index.Extent, dst []byte) error {
	const together = 32
	for len(extents) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(together, len(extents))
		r.touch(data, extents[:n])
		for _, e := range extents[:n] {
			if err := r.mappedHeader(data, e); err != nil {
				return fmt.Errorf("read %s: %w", r.name, err)
			}
			copy(dst[:e.Len], data[e.Off:])
			dst = dst[e.Len:]
		}
		extents = extents[n:]
	}
	return nil
}

// touch loads the first byte of the page of each extent and does nothing else, so
// that no load waits for another. The sum only keeps the compiler from leaving
// the loads out.
//
//go:noinline
func (r *reader) touch(data []byte, extents []index.Extent) (sum byte) {
	for _, e := range extents {
		if at := e.Off &^ (r.page - 1); at < r.size {
			sum += data[at]
		}
	}
	return sum
}

// mappedHeader makes sure that a value stands where values do.
func (r *reader) mappedHeader(data []byte, e index.Extent) error {
	switch start := e.Off - e.Off%r.page; {
	case e.Len == 0:
		return nil
	case e.Off-start == pageHeader:
		return r.checkOverflow(data[start:], e)
	case start+r.page > r.size:
		return fmt.Errorf("file ends in page %d: it %w", start/r.page, meta.ErrCorrupt)
	default:
		return r.checkLeaf(data[start:start+r.page], e)
	}
}

// check makes sure that the extents are in the file and fill dst.
func (r *reader) check(extents []index.Extent, room int64) error {
	for _, e := range extents {
		if e.File != 0 || e.Off < 0 || e.Len < 0 || e.Len > r.size || e.Off > r.size-e.Len {
			return fmt.Errorf("read %s: %d bytes at %d of file %d, of %d: index %w", r.name, e.Len, e.Off, e.File, r.size, meta.ErrCorrupt)
		}
		if room -= e.Len; room < 0 {
			break
		}
	}
	if room != 0 {
		return fmt.Errorf("read %s: records do not fill a buffer exactly: request %w", r.name, meta.ErrInvalid)
	}
	return nil
}

func (q *request) value(e index.Extent, dst []byte) error {
	switch {
	case e.Len == 0:
		return nil
	case e.Off%q.page == pageHeader: // where no value in a leaf can stand
		return q.overflow(e, dst)
	default:
		return q.inline(e, dst)
	}
}

// overflow reads a value together with the header of its pages.
func (q *request) overflow(e index.Extent, dst []byte) error {
	if err := q.fill(q.header[:], dst, e.Off-pageHeader); err != nil {
		return err
	}
	return q.checkOverflow(q.header[:], e)
}

func (r *reader) checkOverflow(h []byte, e index.Extent) error {
	number, kind, pages := little.Uint64(h), little.Uint16(h[10:]), int64(little.Uint32(h[12:]))
	if number != uint64(e.Off/r.page) || kind&pageKinds != pageOverflow || pages*r.page < pageHeader+e.Len {
		return fmt.Errorf("page %d: not the pages of a value of %d bytes: it %w", e.Off/r.page, e.Len, meta.ErrCorrupt)
	}
	return nil
}

func (q *request) inline(e index.Extent, dst []byte) error {
	number, at := e.Off/q.page, e.Off%q.page
	if q.number != number {
		if q.leaf == nil {
			q.leaf = make([]byte, q.page)
		}
		q.number = 0
		if err := q.fill(nil, q.leaf, number*q.page); err != nil {
			return err
		}
		q.number = number
	}
	if err := q.checkLeaf(q.leaf, e); err != nil {
		return err
	}
	copy(dst, q.leaf[at:])
	return nil
}

func (r *reader) checkLeaf(leaf page, e index.Extent) error {
	if number := uint64(e.Off / r.page); leaf.number() != number || leaf.kind() != pageLeaf || e.Len > r.page-e.Off%r.page {
		return fmt.Errorf("page %d: not the page of a value of %d bytes: it %w", number, e.Len, meta.ErrCorrupt)
	}
	return nil
}

// fill reads head and body, which stand side by side in the file.
func (q *request) fill(head, body []byte, off int64) error {
	for len(head)+len(body) > 0 {
		n, err := unix.Preadv2(q.fd, [][]byte{head, body}, off, q.flags)
		switch {
		case err == unix.EINTR:
			continue
		case q.flags != 0 && (err != nil || n < len(head)+len(body)):
			return errNotCached // or the file system cannot tell
		case err != nil:
			return os.NewSyscallError("preadv2", err)
		case n == 0:
			return fmt.Errorf("file ends at %d: it %w", off, meta.ErrCorrupt)
		}
		off += int64(n)
		inHead := min(n, len(head))
		head, body = head[inHead:], body[n-inHead:]
	}
	return nil
}

// ask has the kernel begin to read the extents. It is advice: an error is
// left to the reading to find.
func (r *reader) ask(extents []index.Extent) {
	align := int64(unix.Getpagesize())
	var from, to int64
	for _, e := range extents {
		first, end := e.Off&^(align-1), e.Off+e.Len
		if first >= from && first <= to+align {
			to = max(to, end)
			continue
		}
		willNeed(r.fd, from, to)
		from, to = first, end
	}
	willNeed(r.fd, from, to)
}

// willNeed advises the kernel to begin to read a part of a file.
func willNeed(fd int, from, to int64) {
	if from < to {
		_ = unix.Fadvise(fd, from, to-from, unix.FADV_WILLNEED)
	}
}
