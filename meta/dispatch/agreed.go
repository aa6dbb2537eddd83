package dispatch

import (
	"context"

	"rankfs/meta/state"
)

// agree has the cluster agree to a TakeUnit. Whether it does, does not, or the outcome
// is unknown, the scheduler observes afterwards what the cluster's state says.
func (q *queueLeader) agree(ctx context.Context, s *state.TakeUnit) (state.TakenUnit, error) {
	r, err := q.group.DoFor(ctx, s.Node, s)
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.mu.scheduler.Changes()
	q.observe(s.Reader)
	if id, ok := q.mu.readers[s.Reader]; ok && s.Take >= 0 && !q.holds(id, s.Take) {
		q.drop(id, s.Take)
	}
	q.wake(before)
	if err != nil {
		return state.TakenUnit{}, err
	}
	return *r.Taken(), nil
}

// catchUp observes all readers: some may have left, and units may have come back,
// without a request.
func (q *queueLeader) catchUp() {
	readers := q.machine.Readers(q.view)
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.mu.scheduler.Changes()
	for _, w := range readers {
		q.observe(w.ID)
	}
	q.wake(before)
}

// observe tells the scheduler what the cluster's state says of a reader, as far as
// that is news. It reads the state with mu held: what was read before waiting for mu
// might be old. A reader of a later queue, which may hold a unit that this one has not,
// is none of the scheduler's. mu is held.
func (q *queueLeader) observe(reader string) {
	w, ok := q.machine.Reader(q.view, reader)
	if !ok || !q.isCurrent() {
		return
	}
	if _, known := q.mu.readers[reader]; !known && w.Left {
		return
	}
	id, err := q.join(reader, w.Node)
	if err != nil {
		return // a reader of a node that the scheduler has no room for; it never got a unit
	}
	if had, ok := q.mu.held[id]; ok && had.unit != w.Unit {
		delete(q.mu.held, id)
		q.drop(id, had.unit)
	}
	switch {
	case w.Left:
		q.mu.scheduler.Leave(id)
		delete(q.mu.readers, reader)
	case w.Unit >= 0 && !q.holds(id, w.Unit):
		q.mu.held[id] = lease{w.Unit, q.now()}
		q.mu.scheduler.Began(q.now(), id, int(w.Unit))
	}
}

// holds reports whether a reader holds a unit, as far as was observed. mu is held.
func (q *queueLeader) holds(id int, unit int64) bool {
	l, ok := q.mu.held[id]
	return ok && l.unit == unit
}

// drop tells the scheduler that a reader does not hold a unit, or no longer, and
// what became of the unit. mu is held.
func (q *queueLeader) drop(id int, unit int64) {
	switch q.machine.Fate(q.view, unit) {
	case state.Done:
		q.mu.scheduler.Finished(q.now(), id, int(unit))
		return
	case state.SetAside:
		q.setAside(unit)
	}
	q.mu.scheduler.Returned(id, int(unit))
}
