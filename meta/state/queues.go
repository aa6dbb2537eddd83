package state

import (
	"fmt"
	"maps"

	"rankfs/meta"
)

// queues are those of views, with their workers and suspects.
type queues struct {
	table[string, *queue]
	units    uint64 // of all
	workers  int    // of all
	suspects int    // of all
}

func (s *state) queues() *queues { return sectionOf[*queues](s) }

func (t *queues) add(q *queue) {
	t.set(q.View, q)
	t.units += q.Units
	t.workers += len(q.workers)
	t.suspects += len(q.suspects)
}

func (t *queues) remove(s *state, q *queue) {
	t.drop(q.View)
	t.units -= q.Units
	t.workers -= len(q.workers)
	t.suspects -= len(q.suspects)
	s.changed.queues = true
}

func (t *queues) forget(s *state, dataset string) {
	for view, q := range t.m {
		if name, _, _ := meta.SplitView(view); name == dataset {
			t.remove(s, q)
		}
	}
}

// makeRoom drops queues that are worked off, oldest first, until there is
// room for so much more. It does not drop the queue of the view keep.
func (t *queues) makeRoom(s *state, queues int, units uint64, workers int, keep string) error {
	for t.len()+queues > MaxQueues || t.units+units > MaxAllUnits || t.workers+workers > MaxAllWorkers {
		oldest := t.oldestOver(keep)
		if oldest == nil {
			return fmt.Errorf("%w: %d queues of %d units and %d workers are not worked off; see: rankfs queue ls, and drop one with: rankfs queue rm",
				meta.ErrBusy, t.len(), t.units, t.workers)
		}
		t.remove(s, oldest)
	}
	return nil
}

func (t *queues) oldestOver(keep string) (oldest *queue) {
	for _, q := range t.m {
		if q.isOver() && q.View != keep && (oldest == nil || q.Sequence < oldest.Sequence) {
			oldest = q
		}
	}
	return oldest
}

// toChange is the queue to write to: a copy if a snapshot has it too.
func (t *queues) toChange(s *state, q *queue) *queue {
	s.changed.queues = true
	if q.era == s.era {
		return q
	}
	c := *q
	c.era, c.units, c.workers, c.suspects = s.era, q.units.share(), maps.Clone(q.workers), maps.Clone(q.suspects)
	t.set(c.View, &c)
	return &c
}

func (t *queues) opened(view string) (*queue, error) {
	q, ok := t.get(view)
	if !ok {
		return nil, fmt.Errorf("queue of %s %w: open it again", view, meta.ErrNotExist)
	}
	return q, nil
}
