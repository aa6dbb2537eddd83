package state

import (
	"cmp"
	"slices"
)

// A Queue is a view whose batches go to the reader that asks next.
type Queue struct {
	View       string
	Generation uint64 // of the dataset
	Units      uint64
	Policy     string
	Seed       uint64
	UID        uint32 `json:",omitempty"` // the user's who opened it first
	Sequence   uint64 // later queues have larger numbers
	Opened     int64  // time of the cluster
	Resets     uint64 `json:"Run"` // how often it was begun again, or what was set aside of it

	// Counted by the machine.
	Done    uint64
	Held    int // units that a reader has, or two
	Readers int `json:"Workers"`    // that have not left
	Aside   int `json:",omitempty"` // units that are given to no reader any more
}

// A queue is a Queue with its readers and units.
//
//   - A reader holds one unit at most, and a unit has two holders at most. The first of them
//     that finishes it makes it done; that of the other is lost.
//   - A unit that is done stays so until a reset. One that was given back too often is set
//     aside, and is given to no reader.
//   - The units, readers and suspects of an era are shared with the snapshot of the next.
type queue struct {
	Queue
	ranks   uint64
	era     uint64
	units   units
	readers map[string]*reader
	here    int // readers that have not left
	// holders counts the readers that hold a unit. It follows from readers, and is
	// passed on to the queue that is in use; older ones must not read it.
	holders  map[int64]int
	suspects map[int64][]Return // units that were given back and are not done
	aside    int                // of these, given back so often that no reader gets them
}

func newQueue(info Queue, ranks, era uint64) *queue {
	return &queue{
		Queue: info, ranks: ranks, era: era,
		units:   newUnits(info.Units),
		readers: make(map[string]*reader),
		holders: make(map[int64]int), suspects: make(map[int64][]Return),
	}
}

// info is the queue with its counts.
func (q *queue) info() *Queue {
	i := q.Queue
	i.Done, i.Held, i.Readers, i.Aside = q.units.done, len(q.holders), q.here, q.aside
	return &i
}

// isOver reports whether nothing is left to do that can be done.
func (q *queue) isOver() bool { return q.units.done+uint64(q.aside) == q.Units && len(q.holders) == 0 }

// isBegun reports whether anything is done, or a reader is here that may do it.
func (q *queue) isBegun() bool { return q.units.done > 0 || q.here > 0 }

// reader is the reader of that id, to write to; nil if there is none.
func (q *queue) reader(id string) *reader {
	w := q.readers[id]
	if w == nil || w.era == q.era {
		return w
	}
	c := *w
	c.era = q.era
	q.readers[id] = &c
	return &c
}

// release lets go of the unit that w holds.
func (q *queue) release(w *reader) {
	if w.Unit < 0 {
		return
	}
	if q.holders[w.Unit]--; q.holders[w.Unit] == 0 {
		delete(q.holders, w.Unit)
	}
	w.Unit, w.Since = -1, 0
}

// leave is the end of what w does. It may have left before.
func (q *queue) leave(w *reader) {
	q.release(w)
	if !w.Left {
		w.Left = true
		q.here--
	}
}

// affected are the readers of a node that have something to return, or to leave.
// Their order shows in what was returned.
func (q *queue) affected(node string, cause Cause) (ids []string) {
	for id, w := range q.readers {
		if w.Node == node && (w.Unit >= 0 || cause == Removal && !w.Left) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// suspected are the suspects, by unit.
func (q *queue) suspected() []Suspect {
	all := make([]Suspect, 0, len(q.suspects))
	for unit, by := range q.suspects {
		all = append(all, Suspect{unit, by})
	}
	slices.SortFunc(all, func(a, b Suspect) int { return cmp.Compare(a.Unit, b.Unit) })
	return all
}

// undo makes all units undone. No reader holds one any more, or has done one.
func (q *queue) undo() {
	q.units = newUnits(q.Units)
	for id := range q.readers {
		w := q.reader(id)
		q.release(w)
		w.Units, w.Busy = 0, 0
	}
}
