package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"rankfs/meta"
)

// A Queue is a view whose batches go to whoever asks next.
type Queue struct {
	View       string
	Generation uint64 // of the dataset
	Units      uint64
	Policy     string
	Seed       uint64
	Sequence   uint64 // later queues have larger numbers
	Opened     int64  // time of the cluster
	Run        uint64 // how often it was begun again

	// Counted by the machine.
	Done    uint64
	Held    int // units that a worker has, or two
	Workers int // that have not left
}

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

// A queue is a Queue with its workers. Those of an era are shared with the
// snapshot of the next.
type queue struct {
	Queue
	ranks   uint64
	era     uint64
	units   units
	workers map[string]*worker
	here    int // workers that have not left
	// holders counts who holds a unit. It follows from workers, and goes
	// along with the queue that is in use; older ones must not ask for it.
	holders map[int64]int
}

func newQueue(info Queue, ranks, era uint64) *queue {
	return &queue{
		Queue: info, ranks: ranks, era: era,
		units:   newUnits(info.Units),
		workers: make(map[string]*worker),
		holders: make(map[int64]int),
	}
}

// info is the queue with its counts.
func (q *queue) info() *Queue {
	i := q.Queue
	i.Done, i.Held, i.Workers = q.units.done, len(q.holders), q.here
	return &i
}

// isOver reports whether nothing is left to do.
func (q *queue) isOver() bool { return q.units.done == q.Units && len(q.holders) == 0 }

// OpenQueue opens the queue of a view. The first wins: the result is the
// queue as it is. When there are too many, the oldest that is worked off goes.
type OpenQueue struct {
	Time
	View       string
	Generation uint64
	Units      uint64
	Policy     string
	Seed       uint64 `json:",omitempty"`
}

func (*OpenQueue) kind() kind { return kindOpenQueue }

func (c *OpenQueue) check() error {
	if c.Units > MaxUnits {
		return fmt.Errorf("queue of %d units %w: use larger batches, %d at most", c.Units, meta.ErrInvalid, MaxUnits)
	}
	_, err := checkView(c.View)
	return first(err, checkText("policy", c.Policy, maxText))
}

func (c *OpenQueue) apply(s *state) (Result, error) {
	v, err := checkView(c.View)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.current(v.Dataset, c.Generation); err != nil {
		return Result{}, err
	}
	if q, ok := s.queues.get(c.View); ok {
		return Result{Queue: q.info()}, nil
	}
	if err := s.roomForQueues(1, c.Units, 0, ""); err != nil {
		return Result{}, fmt.Errorf("open queue of %s: %w", c.View, err)
	}
	q := newQueue(Queue{
		View: c.View, Generation: c.Generation, Units: c.Units, Policy: c.Policy, Seed: c.Seed,
		Sequence: s.next(), Opened: s.Now,
	}, v.Ranks, s.era)
	s.addQueue(q)
	s.changed.queues = true
	return Result{Queue: q.info()}, nil
}

func (s *state) addQueue(q *queue) {
	s.queues.set(q.View, q)
	s.units += q.Units
	s.workers += len(q.workers)
}

func (s *state) dropQueue(q *queue) {
	s.queues.drop(q.View)
	s.units -= q.Units
	s.workers -= len(q.workers)
	s.changed.queues = true
}

func (s *state) dropQueues(dataset string) {
	for view, q := range s.queues.m {
		if name, _, _ := meta.SplitView(view); name == dataset {
			s.dropQueue(q)
		}
	}
}

// roomForQueues drops queues that are worked off, oldest first, until there is
// room for so much more. It does not drop the queue of the view keep.
func (s *state) roomForQueues(queues int, units uint64, workers int, keep string) error {
	for s.queues.len()+queues > MaxQueues || s.units+units > MaxAllUnits || s.workers+workers > MaxAllWorkers {
		oldest := s.oldestOver(keep)
		if oldest == nil {
			return fmt.Errorf("%w: %d queues of %d units and %d workers are not worked off; drop one",
				meta.ErrBusy, s.queues.len(), s.units, s.workers)
		}
		s.dropQueue(oldest)
	}
	return nil
}

func (s *state) oldestOver(keep string) (oldest *queue) {
	for _, q := range s.queues.m {
		if q.isOver() && q.View != keep && (oldest == nil || q.Sequence < oldest.Sequence) {
			oldest = q
		}
	}
	return oldest
}

// toChange is the queue to write to: a copy if a snapshot has it too.
func (s *state) toChange(q *queue) *queue {
	s.changed.queues = true
	if q.era == s.era {
		return q
	}
	c := *q
	c.era, c.units, c.workers = s.era, q.units.share(), maps.Clone(q.workers)
	s.queues.set(c.View, &c)
	return &c
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
	s.workers++
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
			s.workers--
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
// that does not come back have left.
func (s *state) returnLeases(node string, left bool) {
	for _, q := range s.queues.m {
		for id, w := range q.workers {
			leaves := left && !w.Left
			if w.Node != node || w.Unit < 0 && !leaves {
				continue
			}
			q = s.toChange(q)
			q.release(q.worker(id))
			if leaves {
				q.leave(q.worker(id))
			}
		}
	}
}

// LeaveQueue says that a worker is gone. What it holds is for others to take.
type LeaveQueue struct {
	Time
	View, Worker string
}

func (*LeaveQueue) kind() kind { return kindLeaveQueue }

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
	q, ok := s.queues.get(c.View)
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
	q.leave(mine)
	mine.Seen = s.Now
	return Result{}, nil
}

// ResetQueue begins a queue again, all units undone, if it is in that run: a
// command that comes late does not undo the next run.
type ResetQueue struct {
	Time
	View string
	Run  uint64
}

func (*ResetQueue) kind() kind { return kindResetQueue }

func (c *ResetQueue) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *ResetQueue) apply(s *state) (Result, error) {
	q, err := s.opened(c.View)
	if err != nil {
		return Result{}, err
	}
	switch {
	case c.Run > q.Run:
		return Result{}, fmt.Errorf("run %d of the queue of %s %w: it is in run %d", c.Run, c.View, meta.ErrInvalid, q.Run)
	case c.Run == q.Run:
		q = s.toChange(q)
		q.Run++
		q.units = newUnits(q.Units)
		for id := range q.workers {
			q.release(q.worker(id))
		}
	}
	return Result{Queue: q.info()}, nil
}

func (s *state) opened(view string) (*queue, error) {
	q, ok := s.queues.get(view)
	if !ok {
		return nil, fmt.Errorf("queue of %s %w: open it again", view, meta.ErrNotExist)
	}
	return q, nil
}

// DropQueue forgets a queue. One that is not there is forgotten.
type DropQueue struct {
	Time
	View string
}

func (*DropQueue) kind() kind { return kindDropQueue }

func (c *DropQueue) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *DropQueue) apply(s *state) (Result, error) {
	if q, ok := s.queues.get(c.View); ok {
		s.dropQueue(q)
	}
	return Result{}, nil
}
