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
	u := &unpacking{slab: v, dst: dst, end: last + 1}
	var helpers sync.WaitGroup
	for range last / 2 {
		p := s.free()
		if p == nil {
			break
		}
		helpers.Go(func() {
			for ; p != nil && u.work(p); p = s.free() {
				s.presses <- p
			}
			if p != nil {
				s.presses <- p
			}
		})
	}
	for more := true; more; {
		p := <-s.presses
		more = u.work(p)
		s.presses <- p
	}
	helpers.Wait()
	return u.err
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

// An unpacking of a slab is shared by several workers, which take its blocks one by one.
type unpacking struct {
	slab packed
	dst  []byte
	end  int // the block after the last
	next atomic.Int64
	once sync.Once
	err  error // the first; read when all workers are done
}

// work unpacks the next block and reports whether there may be more to do.
func (u *unpacking) work(p *press) bool {
	i := int(u.next.Add(1) - 1)
	if i >= u.end {
		return false
	}
	err := u.block(p, i)
	if err != nil {
		u.once.Do(func() { u.err = err })
		u.next.Store(int64(u.end))
	}
	return err == nil
}

// block unpacks block i.
func (u *unpacking) block(p *press, i int) error {
	start := u.slab.start(i)
	return u.slab.read(p, i, u.dst[start:start+int64(u.slab.size(i))])
}
