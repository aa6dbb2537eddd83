package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

// enter adds a worker that holds nothing. There must be room.
func (t *queues) enter(q *queue, w Worker, now int64) *worker {
	w.Unit, w.Seen = -1, now
	entered := &worker{Worker: w, era: q.era, Last: Stepped{Unit: -1, Finished: -1}}
	q.workers[w.ID] = entered
	q.here++
	t.workers++
	return entered
}

// roomForWorker makes room for one more worker: of a full queue those are
// forgotten that hold nothing and were silent for longest, many at a time so
// that the search is rare.
func (t *queues) roomForWorker(s *state, q *queue) (*queue, error) {
	if len(q.workers) >= MaxWorkers {
		idle := slices.DeleteFunc(slices.Collect(maps.Values(q.workers)), func(w *worker) bool { return w.Unit >= 0 })
		if len(idle) == 0 {
			return nil, fmt.Errorf("queue of %s %w: %d workers hold a unit; let some close it", q.View, meta.ErrBusy, MaxWorkers)
		}
		slices.SortFunc(idle, func(a, b *worker) int {
			return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.ID, b.ID))
		})
		q = t.toChange(s, q)
		for _, w := range idle[:min(len(idle), MaxWorkers/16)] {
			q.leave(q.worker(w.ID))
			delete(q.workers, w.ID)
			t.workers--
		}
	}
	return q, t.makeRoom(s, 0, 0, 1, q.View)
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
	if w == nil {
		room, err := s.queues().roomForWorker(s, q)
		if err != nil {
			return Result{}, err
		}
		q = room
	}
	q = s.queues().toChange(s, q)
	mine := q.worker(c.Worker)
	if mine == nil {
		mine = s.queues().enter(q, Worker{ID: c.Worker}, s.Now)
	}
	s.queues().giveBack(q, mine, Closed, s.Now)
	q.leave(mine)
	mine.Seen = s.Now
	return Result{}, nil
}
