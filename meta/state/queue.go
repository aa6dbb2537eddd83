package state

import (
	"fmt"
	"maps"

	"rankfs/meta"
)

// A Queue is a view whose batches go to the worker that asks next.
type Queue struct {
	View       string
	Generation uint64 // of the dataset
	Units      uint64
	Policy     string
	Seed       uint64
	Sequence   uint64 // later queues have larger numbers
	Opened     int64  // time of the cluster
	Run        uint64 // how often it was begun again, or what was set aside of it

	// Counted by the machine.
	Done    uint64
	Held    int // units that a worker has, or two
	Workers int // that have not left
	Aside   int `json:",omitempty"` // units that are given to no worker any more
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
	// holders counts the workers that hold a unit. It follows from workers, and is
	// passed on to the queue that is in use; older ones must not read it.
	holders  map[int64]int
	suspects map[int64][]Return // units that were given back and are not done
	aside    int                // of these, given back so often that no worker gets them
}

func newQueue(info Queue, ranks, era uint64) *queue {
	return &queue{
		Queue: info, ranks: ranks, era: era,
		units:   newUnits(info.Units),
		workers: make(map[string]*worker),
		holders: make(map[int64]int), suspects: make(map[int64][]Return),
	}
}

// info is the queue with its counts.
func (q *queue) info() *Queue {
	i := q.Queue
	i.Done, i.Held, i.Workers, i.Aside = q.units.done, len(q.holders), q.here, q.aside
	return &i
}

// isOver reports whether nothing is left to do that can be done.
func (q *queue) isOver() bool { return q.units.done+uint64(q.aside) == q.Units && len(q.holders) == 0 }

// OpenQueue opens the queue of a view. The first wins: the result is the
// queue as it is. When there are too many, the oldest that is worked off goes.
type OpenQueue struct {
	Entry
	View       string
	Generation uint64
	Units      uint64
	Policy     string
	Seed       uint64 `json:",omitempty"`
}

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
	if q, ok := s.queues().get(c.View); ok {
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
	s.queues().set(q.View, q)
	s.queues().units += q.Units
	s.queues().workers += len(q.workers)
	s.queues().suspects += len(q.suspects)
}

func (s *state) dropQueue(q *queue) {
	s.queues().drop(q.View)
	s.queues().units -= q.Units
	s.queues().workers -= len(q.workers)
	s.queues().suspects -= len(q.suspects)
	s.changed.queues = true
}

func (s *state) dropQueues(dataset string) {
	for view, q := range s.queues().m {
		if name, _, _ := meta.SplitView(view); name == dataset {
			s.dropQueue(q)
		}
	}
}

// roomForQueues drops queues that are worked off, oldest first, until there is
// room for so much more. It does not drop the queue of the view keep.
func (s *state) roomForQueues(queues int, units uint64, workers int, keep string) error {
	for s.queues().len()+queues > MaxQueues || s.queues().units+units > MaxAllUnits || s.queues().workers+workers > MaxAllWorkers {
		oldest := s.oldestOver(keep)
		if oldest == nil {
			return fmt.Errorf("%w: %d queues of %d units and %d workers are not worked off; drop one",
				meta.ErrBusy, s.queues().len(), s.queues().units, s.queues().workers)
		}
		s.dropQueue(oldest)
	}
	return nil
}

func (s *state) oldestOver(keep string) (oldest *queue) {
	for _, q := range s.queues().m {
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
	c.era, c.units, c.workers, c.suspects = s.era, q.units.share(), maps.Clone(q.workers), maps.Clone(q.suspects)
	s.queues().set(c.View, &c)
	return &c
}

// ResetQueue begins a queue again if it is in that run: a command that comes
// late does not undo the next run. All units are undone; or, with Aside, those
// that were set aside, or might soon have been, are given to workers again, and
// all else stays as it is.
type ResetQueue struct {
	Entry
	View  string
	Run   uint64
	Aside bool `json:",omitempty"`
}

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
		s.forgiveAll(q)
		if !c.Aside {
			q.undo()
		}
	}
	return Result{Queue: q.info()}, nil
}

// undo makes all units undone. No worker holds one any more, or has done one.
func (q *queue) undo() {
	q.units = newUnits(q.Units)
	for id := range q.workers {
		w := q.worker(id)
		q.release(w)
		w.Units, w.Busy = 0, 0
	}
}

func (s *state) opened(view string) (*queue, error) {
	q, ok := s.queues().get(view)
	if !ok {
		return nil, fmt.Errorf("queue of %s %w: open it again", view, meta.ErrNotExist)
	}
	return q, nil
}

// DropQueue forgets a queue. One that is not there is forgotten.
type DropQueue struct {
	Entry
	View string
}

func (c *DropQueue) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *DropQueue) apply(s *state) (Result, error) {
	if q, ok := s.queues().get(c.View); ok {
		s.dropQueue(q)
	}
	return Result{}, nil
}
