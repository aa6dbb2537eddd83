package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"rankfs/meta"
)

// A Worker is one open descriptor that units are taken by.
type Worker struct {
	ID    string
	Node  string
	Rank  uint64
	Unit  int64  // what it holds; -1 if nothing
	Since int64  // time of the cluster when it took that
	Units uint64 // that it has worked through, finished or lost
	Busy  int64  // nanoseconds that it held them
	Seen  int64  // time of the cluster of its last step
	Left  bool   `json:",omitempty"`
}

// A worker is a Worker and its last step. It stays when the worker has left:
// a step of it that comes late must not take a unit that nobody returns.
type worker struct {
	Worker
	Nonce uint64
	Last  Stepped
	era   uint64
}

// worker is that worker to write to, nil if there is none.
func (q *queue) worker(id string) *worker {
	w := q.workers[id]
	if w == nil || w.era == q.era {
		return w
	}
	c := *w
	c.era = q.era
	q.workers[id] = &c
	return &c
}

// enter adds a worker that holds nothing. There must be room.
func (s *state) enter(q *queue, w Worker) *worker {
	w.Unit, w.Seen = -1, s.Now
	entered := &worker{Worker: w, era: q.era, Last: Stepped{Unit: -1, Finished: -1}}
	q.workers[w.ID] = entered
	q.here++
	s.queues().workers++
	return entered
}

// roomForWorker makes room for one more worker: of a full queue those are
// forgotten that hold nothing and were silent for longest, many at a time so
// that the search is rare.
func (s *state) roomForWorker(q *queue) (*queue, error) {
	if len(q.workers) >= MaxWorkers {
		idle := slices.DeleteFunc(slices.Collect(maps.Values(q.workers)), func(w *worker) bool { return w.Unit >= 0 })
		if len(idle) == 0 {
			return nil, fmt.Errorf("queue of %s %w: %d workers hold a unit; let some close it", q.View, meta.ErrBusy, MaxWorkers)
		}
		slices.SortFunc(idle, func(a, b *worker) int {
			return cmp.Or(cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.ID, b.ID))
		})
		q = s.toChange(q)
		for _, w := range idle[:min(len(idle), MaxWorkers/16)] {
			q.leave(q.worker(w.ID))
			delete(q.workers, w.ID)
			s.queues().workers--
		}
	}
	return q, s.roomForQueues(0, 0, 1, q.View)
}

// release lets go of the unit that w holds.
func (q *queue) release(w *worker) {
	if w.Unit < 0 {
		return
	}
	if q.holders[w.Unit]--; q.holders[w.Unit] == 0 {
		delete(q.holders, w.Unit)
	}
	w.Unit, w.Since = -1, 0
}

// leave is the end of what w does. It may have left before.
func (q *queue) leave(w *worker) {
	q.release(w)
	if !w.Left {
		w.Left = true
		q.here--
	}
}

// returnLeases takes back what the workers of a node hold. Those of a node
// that was removed have left.
func (s *state) returnLeases(node string, cause Cause) {
	for _, q := range sorted(&s.queues().table) {
		for _, id := range q.affected(node, cause) {
			q = s.toChange(q)
			s.giveBack(q, q.worker(id), cause)
			if cause == Removal {
				q.leave(q.worker(id))
			}
		}
	}
}

// affected are the workers of a node that have something to return, or to leave.
// Their order shows in what was returned.
func (q *queue) affected(node string, cause Cause) (ids []string) {
	for id, w := range q.workers {
		if w.Node == node && (w.Unit >= 0 || cause == Removal && !w.Left) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
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

func checkWorker(id string) error {
	if id == "" || len(id) > MaxWorkerID || !utf8.ValidString(id) {
		return fmt.Errorf("worker %q %w: use 1 to %d bytes of UTF-8", shorten(id), meta.ErrInvalid, MaxWorkerID)
	}
	return nil
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
		room, err := s.roomForWorker(q)
		if err != nil {
			return Result{}, err
		}
		q = room
	}
	q = s.toChange(q)
	mine := q.worker(c.Worker)
	if mine == nil {
		mine = s.enter(q, Worker{ID: c.Worker})
	}
	s.giveBack(q, mine, Closed)
	q.leave(mine)
	mine.Seen = s.Now
	return Result{}, nil
}
