package pack

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"rankfs/meta"
)

// Get unpacks a slab into dst, which must be as long as it is. Where there is
// nothing of that name it returns an error that wraps meta.ErrNotExist. If one
// byte is not what was packed, it returns an error that wraps meta.ErrCorrupt;
// dst must then not be served, and the slab is not read again.
func (s *Store) Get(id uint32, name Name, dst []byte) error {
	l := s.hold(number(id))
	if l == nil {
		return fmt.Errorf("packed slab: %w", meta.ErrNotExist)
	}
	defer s.release(l)
	v, err := parse(l.rope, s.config.BlockBytes)
	if err == nil && v.name() != name {
		return fmt.Errorf("packed slab: that is another one: %w", meta.ErrNotExist)
	}
	if n := int64(len(dst)); n != l.plain {
		return fmt.Errorf("unpack %d bytes of a slab of %d: %w", n, l.plain, meta.ErrInvalid)
	}
	if err == nil {
		err = s.unpack(v, dst)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.mu.count.unpacked++
	case errors.Is(err, meta.ErrCorrupt) && !l.left:
		if _, is := s.arena.kept(l.number); is == sound {
			s.mu.count.damaged++
			s.arena.mark(l.number, spoilt)
		}
	}
	return err
}

// unpack shares the blocks out among its caller and as many more workers as
// are free, up to one for each two blocks.
func (s *Store) unpack(v packed, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	last := (len(dst) - 1) / v.block
	j := &job{view: v, dst: dst, end: last + 1}
	var helpers sync.WaitGroup
	for range last / 2 {
		p := s.free()
		if p == nil {
			break
		}
		helpers.Go(func() {
			for ; p != nil && j.work(p); p = s.free() {
				s.presses <- p
			}
			if p != nil {
				s.presses <- p
			}
		})
	}
	for more := true; more; {
		p := <-s.presses
		more = j.work(p)
		s.presses <- p
	}
	helpers.Wait()
	return j.err
}

// free returns an idle press, or nil.
func (s *Store) free() *press {
	select {
	case p := <-s.presses:
		return p
	default:
		return nil
	}
}

// A job is the blocks of a slab, which several workers unpack.
type job struct {
	view packed
	dst  []byte
	end  int // the block after the last
	next atomic.Int64
	once sync.Once
	err  error // the first; read when all workers are done
}

// work unpacks the next block and reports whether there may be more to do.
func (j *job) work(p *press) bool {
	i := int(j.next.Add(1) - 1)
	if i >= j.end {
		return false
	}
	err := j.block(p, i)
	if err != nil {
		j.once.Do(func() { j.err = err })
		j.next.Store(int64(j.end))
	}
	return err == nil
}

// block unpacks block i.
func (j *job) block(p *press, i int) error {
	start := j.view.start(i)
	return j.view.read(p, i, j.dst[start:start+int64(j.view.size(i))])
}
