package lmdb

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/meta"
)

const (
	// dropBytes is how much is copied before the mapping's page tables are
	// dropped, so that what the process seems to occupy stays small. The
	// pages remain cached.
	dropBytes = 64 << 20

	// A group of extents is what is timed. It is slow, and so probably read
	// from a disk, if it takes longer than this for each extent and byte. A
	// page that is in memory but not in the page tables takes about 1 us, and
	// one from the disk 70 and more.
	groupExtents  = 32
	groupBytes    = 1 << 20
	slowExtent    = 4 * time.Microsecond
	slowBytesPerS = 1 << 30
)

// A mapping copies values out of a snapshot's file.
//
// Values that are in the page cache are copied from the mapping, which has no
// cost but that of the copy. If they are not, each copy would wait for the
// disk in turn, so that once a group of copies was slow, the kernel is asked
// to read all that follows before the next byte is touched. That costs a
// microsecond an extent, too much where it is not needed, so it ends with the
// first request that was fast.
type mapping struct {
	data   []byte
	page   int64
	copied atomic.Int64
	cold   atomic.Bool // whether the last request was slow
}

func mapFile(s *snapshot) (*mapping, error) {
	m := &mapping{page: s.head.page}
	m.cold.Store(true)
	var err error
	m.data, err = unix.Mmap(int(s.file.Fd()), 0, int(s.version.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", s.data, err)
	}
	// Without this, a fault would read 128 KiB around one value.
	if err := unix.Madvise(m.data, unix.MADV_RANDOM); err != nil {
		m.close()
		return nil, fmt.Errorf("map %s: %w", s.data, err)
	}
	return m, nil
}

func (m *mapping) read(ctx context.Context, extents []index.Extent, dst []byte) error {
	if err := m.check(extents, int64(len(dst))); err != nil {
		return err
	}
	cold, slow := m.cold.Load(), false
	if cold {
		m.ask(extents)
	}
	for len(extents) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, size := group(extents)
		start := time.Now()
		if err := m.copy(extents[:n], dst[:size]); err != nil {
			return err
		}
		extents, dst = extents[n:], dst[size:]
		allowed := time.Duration(n)*slowExtent + time.Duration(size)*time.Second/slowBytesPerS
		if time.Since(start) > allowed {
			slow = true
			if !cold {
				m.ask(extents)
				cold = true
			}
		}
		m.drop(size)
	}
	m.cold.Store(slow)
	return nil
}

// check makes sure that the extents are in the mapping and fill dst.
func (m *mapping) check(extents []index.Extent, room int64) error {
	size := int64(len(m.data))
	for _, e := range extents {
		if e.File != 0 || e.Off < 0 || e.Len < 0 || e.Len > size || e.Off > size-e.Len {
			return fmt.Errorf("read lmdb: %d bytes at %d of file %d, of %d: index %w", e.Len, e.Off, e.File, size, meta.ErrCorrupt)
		}
		if room -= e.Len; room < 0 {
			break
		}
	}
	if room != 0 {
		return fmt.Errorf("read lmdb: records do not fill a buffer exactly: request %w", meta.ErrInvalid)
	}
	return nil
}

// group is how many extents are copied between two looks at the clock, and
// the bytes in them: one at least.
func group(extents []index.Extent) (n int, size int64) {
	for n < len(extents) && n < groupExtents && size < groupBytes {
		size += extents[n].Len
		n++
	}
	return n, size
}

func (m *mapping) copy(extents []index.Extent, dst []byte) error {
	for _, e := range extents {
		if e.Off&(m.page-1) == pageHeader && e.Len > 0 {
			if err := m.overflow(e); err != nil {
				return err
			}
		}
		n := copy(dst, m.data[e.Off:e.Off+e.Len])
		dst = dst[n:]
	}
	return nil
}

// overflow checks the header of the pages that a value stands on. No value in
// a leaf can stand where theirs do.
func (m *mapping) overflow(e index.Extent) error {
	h := m.data[e.Off-pageHeader : e.Off]
	number, kind, pages := little.Uint64(h), little.Uint16(h[10:]), int64(little.Uint32(h[12:]))
	if number != uint64(e.Off/m.page) || kind&pageKinds != pageOverflow || pages*m.page < pageHeader+e.Len {
		return fmt.Errorf("read lmdb: page %d: not the pages of a value of %d bytes: it %w", e.Off/m.page, e.Len, meta.ErrCorrupt)
	}
	return nil
}

// ask has the kernel begin to read the extents. It is advice: an error is
// left to the copy to find.
func (m *mapping) ask(extents []index.Extent) {
	align := int64(unix.Getpagesize())
	var from, to int64
	for _, e := range extents {
		first, end := e.Off&^(align-1), e.Off+e.Len
		if first >= from && first <= to+align {
			to = max(to, end)
			continue
		}
		m.advise(from, to, unix.MADV_WILLNEED)
		from, to = first, end
	}
	m.advise(from, to, unix.MADV_WILLNEED)
}

func (m *mapping) advise(from, to int64, advice int) {
	if from < to {
		_ = unix.Madvise(m.data[from:to], advice)
	}
}

// drop counts what was copied and drops the page tables when it is time. To
// copies under way that is a page fault.
func (m *mapping) drop(n int64) {
	if now := m.copied.Add(n); now/dropBytes != (now-n)/dropBytes {
		m.advise(0, int64(len(m.data)), unix.MADV_DONTNEED)
	}
}

func (m *mapping) close() error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m.data)
}
