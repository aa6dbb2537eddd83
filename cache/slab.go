package cache

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Slab is a complete batch, held until Release. Its methods but Release may be
// called until then, and concurrently.
type Slab struct {
	config      *Config
	mu          *guarded
	descriptors *descriptors
	entry       *entry
	by          int32 // the thread that opened it
	once        sync.Once
}

// Backing is the id under which the kernel knows the file; zero if there is
// no Backing.
func (s *Slab) Backing() int32 { return s.entry.backing }

// Fd is the slab's file, which must only be read; below zero if the daemon has no
// descriptor left for it.
func (s *Slab) Fd() int {
	if e := s.entry; e.ram != nil {
		if _, err := s.descriptors.bytes(e.ram); err != nil {
			return -1
		}
	}
	return s.entry.fd()
}

// Size is the number of bytes of the batch.
func (s *Slab) Size() int64 { return s.entry.size }

// Tier says where the slab's bytes are.
func (s *Slab) Tier() string { return s.entry.tier() }

// ReadAt copies bytes of the slab.
func (s *Slab) ReadAt(p []byte, off int64) (int, error) {
	e := s.entry
	if e.ram == nil {
		return e.file.ReadAt(p, off)
	}
	if off < 0 || off > e.size {
		return 0, fmt.Errorf("read slab at %d %w: it has %d bytes", off, meta.ErrInvalid, e.size)
	}
	mem, err := s.descriptors.bytes(e.ram)
	if err != nil {
		return 0, err
	}
	n := copy(p, mem[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sum is the xxh64 of the slab's bytes. Those that tiers keep are of more, or of parts.
func (s *Slab) Sum(ctx context.Context) (uint64, error) {
	h, buf := xxhash.New(), make([]byte, 64<<10)
	for at := int64(0); at < s.Size(); at += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := buf[:min(int64(len(buf)), s.Size()-at)]
		if _, err := s.ReadAt(b, at); err != nil {
			return 0, fmt.Errorf("sum of slab: %w", err)
		}
		h.Write(b)
	}
	return h.Sum64(), nil
}

// check makes sure that the slab is still what it was when it was made or
// opened: one on a disk may have left the page cache since, and the disk may
// have failed. One that is not is released, and the next open gets another.
func (s *Slab) check() error {
	e := s.entry
	if e.file == nil {
		return nil
	}
	err := e.file.Check()
	if err == nil {
		return nil
	}
	s.config.Log.Debug("slab on nvme not served", "cause", err)
	s.mu.Lock()
	s.mu.outdate(e)
	s.mu.Unlock()
	s.Release()
	return err
}

// openedBy notes which thread has the slab open, if that is known. The cache's lock
// is held.
func (s *Slab) openedBy(thread int32) {
	if s.by = thread; thread != 0 {
		s.entry.threads = append(s.entry.threads, thread)
	}
}

// Release ends the hold of one open. It may be called more than once.
func (s *Slab) Release() {
	s.once.Do(func() {
		g, e := s.mu, s.entry
		g.Lock()
		defer g.Unlock()
		if g.life.ended {
			return
		}
		if i := slices.Index(e.threads, s.by); i >= 0 {
			e.threads = slices.Delete(e.threads, i, i+1)
		}
		g.count.Handles--
		g.unhold(e)
	})
}
