package state

import (
	"fmt"
	"maps"

	"rankfs/meta"
)

const (
	MaxQueues      = 4096
	MaxUserQueues  = MaxQueues / 4   // of one user but root
	MaxUnits       = 1 << 28         // of one queue: 32 MiB
	MaxAllUnits    = 1 << 31         // of all: 256 MiB
	MaxUserUnits   = MaxAllUnits / 4 // of all queues of one user but root
	MaxReaders     = 1 << 16         // of one queue
	MaxAllReaders  = 1 << 20         // of all: 300 MiB
	MaxSuspects    = MaxReaders      // of one queue: as when all its readers end at once
	MaxAllSuspects = 1 << 18         // of all: 120 MiB
)

// queues are the queues of views, with their readers and suspects.
type queues struct {
	table[string, *queue]
	units    uint64 // of all
	readers  int    // of all
	suspects int    // of all
}

func (s *state) queues() *queues { return sectionOf[*queues](s) }

func (t *queues) add(q *queue) {
	t.set(q.View, q)
	t.units += q.Units
	t.readers += len(q.readers)
	t.suspects += len(q.suspects)
}

func (t *queues) remove(s *state, q *queue) {
	t.drop(q.View)
	t.units -= q.Units
	t.readers -= len(q.readers)
	t.suspects -= len(q.suspects)
	s.changed.queues = true
}

func (t *queues) datasetGone(s *state, d *Dataset) {
	for view, q := range t.m {
		if name, _, _ := meta.SplitView(view); name == d.Name {
			t.remove(s, q)
		}
	}
}

// makeRoom drops queues of which nothing would be lost until there is room for one more, of
// so many units, among all, and among those of its user, unless that is root.
func (t *queues) makeRoom(s *state, units uint64, uid uint32) error {
	for uid != 0 {
		queues, has := t.of(uid)
		if queues < MaxUserQueues && has+units <= MaxUserUnits {
			break
		}
		if !t.dropOne(s, func(q *queue) bool { return q.UID == uid }) {
			return fmt.Errorf("%w: user %d has %d queues of %d batches that are not worked off, of %d and %d; see: rankfs queue ls; work some off, or have an admin drop one: rankfs queue rm",
				meta.ErrBusy, uid, queues, has, MaxUserQueues, MaxUserUnits)
		}
	}
	for t.len() >= MaxQueues || t.units+units > MaxAllUnits {
		if !t.dropOne(s, func(*queue) bool { return true }) {
			return fmt.Errorf("%w: %d queues of %d batches are not worked off; see: rankfs queue ls, and drop one with: rankfs queue rm",
				meta.ErrBusy, t.len(), t.units)
		}
	}
	return nil
}

// of counts the queues of a user, and their units.
func (t *queues) of(uid uint32) (queues int, units uint64) {
	for _, q := range t.m {
		if q.UID == uid {
			queues++
			units += q.Units
		}
	}
	return queues, units
}

// dropOne drops one of some queues, if nothing would be lost with it: the oldest that was
// not begun, or else the oldest that is worked off.
func (t *queues) dropOne(s *state, among func(*queue) bool) bool {
	var least *queue
	for _, q := range t.m {
		switch {
		case q.isBegun() && !q.isOver() || !among(q):
		case least == nil, least.isBegun() && !q.isBegun(), least.isBegun() == q.isBegun() && q.Sequence < least.Sequence:
			least = q
		}
	}
	if least != nil {
		t.remove(s, least)
	}
	return least != nil
}

// toChange is the queue to write to: a copy if a snapshot has it too.
func (t *queues) toChange(s *state, q *queue) *queue {
	s.changed.queues = true
	if q.era == s.era {
		return q
	}
	c := *q
	c.era, c.units, c.readers, c.suspects = s.era, q.units.share(), maps.Clone(q.readers), maps.Clone(q.suspects)
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
