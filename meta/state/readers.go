package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rankfs/meta"
)

// withReader is the queue and its reader of the ID of w, to be changed. One that it does not
// know enters it as w, and holds nothing.
func (t *queues) withReader(s *state, q *queue, w Reader) (*queue, *reader, error) {
	if q.readers[w.ID] != nil {
		q = t.toChange(s, q)
		return q, q.reader(w.ID), nil
	}
	if err := t.roomForReader(s, q); err != nil {
		return nil, nil, err
	}
	q, _ = t.get(q.View)
	q = t.toChange(s, q)
	w.Unit, w.Seen = -1, s.Now
	entered := &reader{Reader: w, era: q.era, Last: TakenUnit{Unit: -1, Finished: -1}}
	q.readers[w.ID] = entered
	q.here++
	t.readers++
	return q, entered, nil
}

// roomForReader makes room for one more reader: of a full queue, or of the one that has
// most if all together are full, those are forgotten that hold nothing, first those that have
// left, and were silent for longest; many at a time so that the search is rare.
func (t *queues) roomForReader(s *state, q *queue) error {
	full := q
	switch {
	case len(q.readers) >= MaxReaders:
	case t.readers >= MaxAllReaders:
		for _, other := range t.m {
			if n := len(other.readers) - len(full.readers); n > 0 || n == 0 && other.Sequence < full.Sequence {
				full = other
			}
		}
	default:
		return nil
	}
	idle := slices.DeleteFunc(slices.Collect(maps.Values(full.readers)), func(w *reader) bool { return w.Unit >= 0 })
	if len(idle) == 0 {
		return fmt.Errorf("queue of %s %w: %d readers of the queue of %s hold a batch; let some close it", q.View, meta.ErrBusy, len(full.readers), full.View)
	}
	stays := func(w *reader) int {
		if w.Left {
			return 0
		}
		return 1
	}
	slices.SortFunc(idle, func(a, b *reader) int {
		return cmp.Or(cmp.Compare(stays(a), stays(b)), cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.ID, b.ID))
	})
	full = t.toChange(s, full)
	for _, w := range idle[:min(len(idle), max(1, len(full.readers)/16))] {
		full.leave(full.reader(w.ID))
		delete(full.readers, w.ID)
		t.readers--
	}
	return nil
}

// LeaveQueue says that a reader is gone. What it holds is for others to take.
type LeaveQueue struct {
	Entry
	View   string
	Reader string `json:"Worker"`
}

// about: an unknown reader counts as one of the node that says that it has left.
func (c *LeaveQueue) about(s *state) string {
	if q, ok := s.queues().get(c.View); ok {
		if w := q.readers[c.Reader]; w != nil && w.Node != "" {
			return w.Node
		}
	}
	return c.By
}

func (c *LeaveQueue) check() error {
	_, err := checkView(c.View)
	return first(err, checkReader(c.Reader))
}

func (c *LeaveQueue) apply(s *state) (Result, error) {
	q, ok := s.queues().get(c.View)
	if !ok {
		return Result{}, nil
	}
	w := q.readers[c.Reader]
	if w != nil && w.Left {
		return Result{}, nil
	}
	q, mine, err := s.queues().withReader(s, q, Reader{ID: c.Reader})
	if err != nil {
		return Result{}, err
	}
	s.queues().giveBack(q, mine, Closed, s.Now)
	q.leave(mine)
	mine.Seen = s.Now
	return Result{}, nil
}
