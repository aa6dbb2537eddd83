package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

// withWorker is the queue and its worker of the ID of w, to be changed. One that it does not
// know enters it as w, and holds nothing.
func (t *queues) withWorker(s *state, q *queue, w Worker) (*queue, *worker, error) {
	if q.workers[w.ID] != nil {
		q = t.toChange(s, q)
		return q, q.worker(w.ID), nil
	}
	if err := t.roomForWorker(s, q); err != nil {
		return nil, nil, err
	}
	q, _ = t.get(q.View)
	q = t.toChange(s, q)
	w.Unit, w.Seen = -1, s.Now
	entered := &worker{Worker: w, era: q.era, Last: TakenUnit{Unit: -1, Finished: -1}}
	q.workers[w.ID] = entered
	q.here++
	t.workers++
	return q, entered, nil
}

// roomForWorker makes room for one more worker: of a full queue, or of the one that has
// most if all together are full, those are forgotten that hold nothing, first those that have
// left, and were silent for longest; many at a time so that the search is rare.
func (t *queues) roomForWorker(s *state, q *queue) error {
	full := q
	switch {
	case len(q.workers) >= MaxWorkers:
	case t.workers >= MaxAllWorkers:
		for _, other := range t.m {
			if n := len(other.workers) - len(full.workers); n > 0 || n == 0 && other.Sequence < full.Sequence {
				full = other
			}
		}
	default:
		return nil
	}
	idle := slices.DeleteFunc(slices.Collect(maps.Values(full.workers)), func(w *worker) bool { return w.Unit >= 0 })
	if len(idle) == 0 {
		return fmt.Errorf("queue of %s %w: %d readers of the queue of %s hold a batch; let some close it", q.View, meta.ErrBusy, len(full.workers), full.View)
	}
	stays := func(w *worker) int {
		if w.Left {
			return 0
		}
		return 1
	}
	slices.SortFunc(idle, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(stays(a), stays(b)), cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.ID, b.ID))
	})
	full = t.toChange(s, full)
	for _, w := range idle[:min(len(idle), max(1, len(full.workers)/16))] {
		full.leave(full.worker(w.ID))
		delete(full.workers, w.ID)
		t.workers--
	}
	return nil
}

// LeaveQueue says that a worker is gone. What it holds is for others to take.
type LeaveQueue struct {
	Entry
	View, Worker string
}

// about: an unknown worker counts as one of the node that says that it has left.
func (c *LeaveQueue) about(s *state) string {
	if q, ok := s.queues().get(c.View); ok {
		if w := q.workers[c.Worker]; w != nil && w.Node != "" {
			return w.Node
		}
	}
	return c.By
}

func (c *LeaveQueue) check() error {
	_, err := checkView(c.View)
	return first(err, checkWorker(c.Worker))
}

func (c *LeaveQueue) apply(s *state) (Result, error) {
	q, ok := s.queues().get(c.View)
	if !ok {
		return Result{}, nil
	}
	w := q.workers[c.Worker]
	if w != nil && w.Left {
		return Result{}, nil
	}
	q, mine, err := s.queues().withWorker(s, q, Worker{ID: c.Worker})
	if err != nil {
		return Result{}, err
	}
	s.queues().giveBack(q, mine, Closed, s.Now)
	q.leave(mine)
	mine.Seen = s.Now
	return Result{}, nil
}
