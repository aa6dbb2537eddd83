package queue

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// A Lease is a unit that the group let a reader have.
type Lease struct {
	Unit   int
	Reader int
	Since  time.Duration
}

// A History is a reader, and what the group counted of its work.
type History struct {
	Reader int
	Node   int
	Units  int           // that it finished
	Took   time.Duration // for all of them
}

// Restore forgets everything, and begins again with what the group holds: bit
// u%64 of done[u/64] is set if unit u is done, and every reader has a history.
// After an error no reader has joined and all units are free.
func (s *Scheduler) Restore(now time.Duration, done []uint64, leases []Lease, readers []History) error {
	s.units.reset()
	s.begin()
	s.changes++
	err := s.restore(now, done, leases, readers)
	if err != nil {
		s.units.reset()
		s.begin()
	}
	return err
}

func (s *Scheduler) restore(now time.Duration, done []uint64, leases []Lease, readers []History) error {
	if want := (len(s.units.state) + 63) / 64; len(done) != want {
		return fmt.Errorf("%d words of done units %w: want %d", len(done), meta.ErrInvalid, want)
	}
	for unit := range s.units.state {
		if done[unit/64]>>(unit%64)&1 != 0 {
			s.units.take(unit)
			s.units.finish(unit)
		}
	}
	s.begin()
	if err := s.restoreReaders(now, readers); err != nil {
		return err
	}
	return s.restoreLeases(leases)
}

func (s *Scheduler) restoreReaders(now time.Duration, readers []History) error {
	for _, h := range readers {
		if h.Units < 0 || h.Took < 0 {
			return fmt.Errorf("history %+v %w", h, meta.ErrInvalid)
		}
		if err := s.Join(now, h.Reader, h.Node); err != nil {
			return err
		}
		if h.Units > 0 {
			s.readers.recall(h)
		}
	}
	return nil
}

func (s *Scheduler) restoreLeases(leases []Lease) error {
	for _, l := range leases {
		if l.Unit < 0 || l.Unit >= len(s.units.state) {
			return fmt.Errorf("lease %+v %w: units are numbered from 0 to %d", l, meta.ErrInvalid, len(s.units.state)-1)
		}
		if _, w := s.readers.find(l.Reader); w == nil {
			return fmt.Errorf("lease %+v: reader %w", l, meta.ErrNotExist)
		}
		if state := s.units.state[l.Unit]; state != stateDone && state >= 2 {
			return fmt.Errorf("lease %+v %w: two readers have the unit", l, meta.ErrInvalid)
		}
		s.Began(l.Since, l.Reader, l.Unit)
	}
	return nil
}

// recall is learn for what is only known as a sum.
func (c *readers) recall(h History) {
	_, w := c.find(h.Reader)
	each := h.Took / time.Duration(h.Units)
	w.pace.add(each)
	w.pace.n = h.Units
	c.nodes[w.node].add(each)
	c.all.add(each)
}
