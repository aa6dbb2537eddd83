package queue

import (
	"fmt"
	"time"

	"rankfs/meta"
)

// A Lease is a unit that the group let a worker have.
type Lease struct {
	Unit   int
	Worker int
	Since  time.Duration
}

// A History is a worker, and what the group counted of its work.
type History struct {
	Worker int
	Node   int
	Units  int           // that it finished
	Took   time.Duration // for all of them
}

// Restore forgets everything, and begins again with what the group holds: bit
// u%64 of done[u/64] is set if unit u is done, and every worker has a history.
// After an error no worker has joined and all units are free.
func (s *Scheduler) Restore(now time.Duration, done []uint64, leases []Lease, workers []History) error {
	s.units.reset()
	s.begin()
	s.changes++
	err := s.restore(now, done, leases, workers)
	if err != nil {
		s.units.reset()
		s.begin()
	}
	return err
}

func (s *Scheduler) restore(now time.Duration, done []uint64, leases []Lease, workers []History) error {
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
	if err := s.restoreWorkers(now, workers); err != nil {
		return err
	}
	return s.restoreLeases(leases)
}

func (s *Scheduler) restoreWorkers(now time.Duration, workers []History) error {
	for _, h := range workers {
		if h.Units < 0 || h.Took < 0 {
			return fmt.Errorf("history %+v %w", h, meta.ErrInvalid)
		}
		if err := s.Join(now, h.Worker, h.Node); err != nil {
			return err
		}
		if h.Units > 0 {
			s.crew.recall(h)
		}
	}
	return nil
}

func (s *Scheduler) restoreLeases(leases []Lease) error {
	for _, l := range leases {
		if l.Unit < 0 || l.Unit >= len(s.units.state) {
			return fmt.Errorf("lease %+v %w: units are numbered from 0 to %d", l, meta.ErrInvalid, len(s.units.state)-1)
		}
		if _, w := s.crew.find(l.Worker); w == nil {
			return fmt.Errorf("lease %+v: worker %w", l, meta.ErrNotExist)
		}
		if state := s.units.state[l.Unit]; state != stateDone && state >= 2 {
			return fmt.Errorf("lease %+v %w: two workers have the unit", l, meta.ErrInvalid)
		}
		s.Began(l.Since, l.Worker, l.Unit)
	}
	return nil
}

// recall is learn for what is only known as a sum.
func (c *crew) recall(h History) {
	_, w := c.find(h.Worker)
	each := h.Took / time.Duration(h.Units)
	w.pace.add(each)
	w.pace.n = h.Units
	c.nodes[w.node].add(each)
	c.all.add(each)
}
