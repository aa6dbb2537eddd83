package pack

import (
	"errors"
	"fmt"
	"sync"

	"rankfs/meta"
)

// An arena is memory outside of the Go heap, within a budget.
//
// It lends frames, all of one size, so gaps of addresses do not exist. A rope
// of frames costs the pages that were written: the last one is the only one not
// full, and the untouched rest of its frame is nothing but addresses. Pages
// count from before they are touched until after they went back to the system,
// which is when the rope ends.
//
// What it knows of a frame takes 12 bytes, on the Go heap but without a pointer:
// of a small slab that is all.
//
// mu takes no other lock, and under it segments are mapped and unmapped but no
// page is touched or freed.
type arena struct {
	mu struct {
		sync.Mutex
		limit    int64
		used     int64      // bytes of the pages that are or may be touched
		segments []*segment // by number; nil: none has it now
	}
}

// A segment is one mapping, cut into frames.
type segment struct {
	mem   []byte
	cells []cell // of its frames, by number
	free  int32  // first of the chain of frames that are not lent
	lent  int
}

// A cell says whether a frame is taken, and by which slab.
type cell struct {
	next  number // of its slab; of one that is free, in its segment
	low   uint32 // of a slab's first frame: how many bytes it unpacks to
	high  uint16
	pages uint8 // of the frame that count
	state state
}

type state uint8

const (
	body   state = iota // of a slab, or of nothing yet
	sound               // a slab begins here that may be read
	spoilt              // and one that may not be, any more
)

func newArena(limit int64) *arena {
	a := new(arena)
	a.mu.limit = limit
	return a
}

// resize sets the budget. What is over it stays.
func (a *arena) resize(limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.limit = limit
}

func (a *arena) usage() (used, limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.used, a.mu.limit
}

// reserve counts more bytes, or returns an error that wraps meta.ErrNoSpace.
func (a *arena) reserve(more int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.used+more > a.mu.limit {
		return fmt.Errorf("%d of %d bytes are used, %d more are needed: %w", a.mu.used, a.mu.limit, more, meta.ErrNoSpace)
	}
	a.mu.used += more
	return nil
}

// lend returns a frame whose pages do not count yet.
func (a *arena) lend() (frame, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	empty := len(a.mu.segments)
	for n, s := range a.mu.segments {
		switch {
		case s == nil:
			empty = min(empty, n)
		case s.lent < len(s.cells):
			return s.take(n), nil
		}
	}
	if empty >= maxSegments {
		return frame{}, fmt.Errorf("%d segments of memory are in use: %w", empty, meta.ErrNoSpace)
	}
	s, err := newSegment(segmentSize(a.mu.limit))
	if err != nil {
		return frame{}, err
	}
	if empty == len(a.mu.segments) {
		a.mu.segments = append(a.mu.segments, nil)
	}
	a.mu.segments[empty] = s
	return s.take(empty), nil
}

// grow adds n bytes of anything to the end of a rope.
func (a *arena) grow(r *rope, n int) error {
	length := r.length + int64(n)
	if more := int64(pages(int(length))) - r.real; more > 0 {
		if err := a.reserve(more); err != nil {
			return err
		}
		from := r.real
		r.real += more
		if err := a.populate(r, from); err != nil {
			return err
		}
	}
	r.length = length
	return nil
}

// populate brings the pages of a rope from a page on.
func (a *arena) populate(r *rope, from int64) error {
	for from < r.real {
		if from == int64(len(r.frames))*frameBytes {
			f, err := a.lend()
			if err != nil {
				return err
			}
			r.frames = append(r.frames, f)
		}
		at := int(from % frameBytes)
		n := min(r.real-from, int64(frameBytes-at))
		if err := populate(r.frames[from/frameBytes].mem[at : at+int(n)]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func newSegment(size int) (*segment, error) {
	mem, err := mapBytes(size)
	if err != nil {
		return nil, err
	}
	s := &segment{mem: mem, cells: make([]cell, size/frameBytes)}
	for n := range s.cells {
		s.cells[n].next = number(n + 1)
	}
	return s, nil
}

// take lends a frame of the segment of a number.
func (s *segment) take(own int) frame {
	n := s.free
	s.free = int32(s.cells[n].next)
	s.cells[n] = cell{next: none}
	s.lent++
	return frame{number(own)<<frameBits | number(n), s.frame(int(n))}
}

func (s *segment) frame(n int) []byte {
	return s.mem[n*frameBytes : (n+1)*frameBytes : (n+1)*frameBytes]
}

// find is the segment of a frame, and its number there. mu is held.
func (a *arena) find(n number) (s *segment, at int) {
	return a.mu.segments[n>>frameBits], int(n & (1<<frameBits - 1))
}

// cell is the cell of a frame that is lent. mu is held.
func (a *arena) cell(n number) *cell {
	s, at := a.find(n)
	return &s.cells[at]
}

// keep leaves a rope to the arena, and returns the number by which rope finds it.
func (a *arena) keep(r *rope, plain int64) number {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, left := none, r.real
	for i := len(r.frames) - 1; i >= 0; i-- {
		n := r.frames[i].number
		of := left - int64(i)*frameBytes
		*a.cell(n) = cell{next: next, pages: uint8(of / int64(pages(1)))}
		next, left = n, left-of
	}
	first := a.cell(next)
	first.low, first.high, first.state = uint32(plain), uint16(plain>>32), sound
	return next
}

// kept describes the slab that begins at a frame: how many bytes it unpacks to, and
// its state, which is body if no slab begins there.
func (a *arena) kept(n number) (plain int64, s state) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if int(n>>frameBits) >= len(a.mu.segments) {
		return 0, body
	}
	seg, at := a.find(n)
	if seg == nil || at >= len(seg.cells) {
		return 0, body
	}
	c := seg.cells[at]
	return int64(c.high)<<32 | int64(c.low), c.state
}

// mark changes the state of the slab that begins at a frame.
func (a *arena) mark(n number, s state) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cell(n).state = s
}

// all are the numbers of all kept slabs.
func (a *arena) all() (first []number) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n, s := range a.mu.segments {
		if s == nil {
			continue
		}
		for at, c := range s.cells {
			if c.state != body {
				first = append(first, number(n)<<frameBits|number(at))
			}
		}
	}
	return first
}

// rope is the rope of a kept slab, as long as its pages.
func (a *arena) rope(n number) *rope {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := new(rope)
	for n != none {
		s, at := a.find(n)
		r.frames = append(r.frames, frame{n, s.frame(at)})
		r.real += int64(s.cells[at].pages) * int64(pages(1))
		n = s.cells[at].next
	}
	r.length = r.real
	return r
}

// end takes the frames of a rope back and the pages that counted for it.
func (a *arena) end(r *rope) error {
	var err error
	for _, f := range r.frames {
		err = errors.Join(err, giveBack(f.mem))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.used -= r.real
	for _, f := range r.frames {
		s, at := a.find(f.number)
		s.cells[at] = cell{next: number(s.free)}
		s.free = int32(at)
		if s.lent--; s.lent == 0 {
			a.mu.segments[f.number>>frameBits] = nil
			err = errors.Join(err, unmapBytes(s.mem))
		}
	}
	for n := len(a.mu.segments); n > 0 && a.mu.segments[n-1] == nil; n-- {
		a.mu.segments = a.mu.segments[:n-1]
	}
	*r = rope{}
	return err
}
