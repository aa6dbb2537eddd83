package pack

import (
	"errors"
	"fmt"
	"slices"
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
// mu takes no other lock, and under it segments are mapped and unmapped but no
// page is touched or freed.
type arena struct {
	mu struct {
		sync.Mutex
		limit    int64
		used     int64 // bytes of the pages that are or may be touched
		segments []*segment
	}
}

// A segment is one mapping, cut into frames.
type segment struct {
	mem  []byte
	free []int32 // frames, by number
}

// A frame is lent to one rope.
type frame struct {
	segment *segment
	number  int32
	mem     []byte
}

const (
	// frameBytes: a packed block of 100 KiB crosses frames of this size 40
	// times in 100 and is then copied together, 2 per cent of unpacking it;
	// small enough that page tables of half-empty frames do not show.
	frameBytes = 256 << 10
	// segmentBytes is 256 frames: few enough mappings, and soon all free again.
	segmentBytes = 64 << 20
	// maxSegments bounds the mappings of an arena, of which a process may have
	// 65,530: 256 GiB of addresses, or 16 times the budget.
	maxSegments = 4096
)

// segmentSize is how long the segments of a budget are.
func segmentSize(limit int64) int {
	n := segmentBytes
	for int64(n)*maxSegments/16 < limit {
		n *= 2
	}
	return n
}

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
	for _, s := range a.mu.segments {
		if len(s.free) > 0 {
			return s.take(), nil
		}
	}
	if len(a.mu.segments) >= maxSegments {
		return frame{}, fmt.Errorf("%d segments of memory are in use: %w", len(a.mu.segments), meta.ErrNoSpace)
	}
	size := segmentSize(a.mu.limit)
	mem, err := mapBytes(size)
	if err != nil {
		return frame{}, err
	}
	s := &segment{mem: mem}
	for n := size/frameBytes - 1; n >= 0; n-- {
		s.free = append(s.free, int32(n))
	}
	a.mu.segments = append(a.mu.segments, s)
	return s.take(), nil
}

func (s *segment) take() frame {
	n := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	at := int(n) * frameBytes
	return frame{s, n, s.mem[at : at+frameBytes : at+frameBytes]}
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
		s := f.segment
		s.free = append(s.free, f.number)
		if len(s.free)*frameBytes == len(s.mem) {
			a.mu.segments = slices.DeleteFunc(a.mu.segments, func(t *segment) bool { return t == s })
			err = errors.Join(err, unmapBytes(s.mem))
		}
	}
	*r = rope{}
	return err
}
