package state

import "slices"

// giveBack releases the unit that w holds and makes it a suspect, unless there are as
// many suspects as there may be: those get finished, or there is no good unit.
func (t *queues) giveBack(q *queue, w *reader, cause Cause, now int64) {
	unit := w.Unit
	q.release(w)
	if unit < 0 || q.units.has(unit) {
		return
	}
	by, known := q.suspects[unit]
	twice := slices.ContainsFunc(by, func(r Return) bool { return r.Reader == w.ID })
	if isAside(by) || twice || !known && (len(q.suspects) >= MaxSuspects || t.suspects >= MaxAllSuspects) {
		return
	}
	if !known {
		t.suspects++
	}
	// A snapshot may share the array of by, so append must not write to it.
	by = append(slices.Clip(by), Return{Reader: w.ID, Node: w.Node, Rank: w.Rank, At: now, Cause: cause})
	q.suspects[unit] = by
	if isAside(by) {
		q.aside++
	}
}

// forgive makes a unit no suspect any more.
func (t *queues) forgive(q *queue, unit int64) {
	by, known := q.suspects[unit]
	if !known {
		return
	}
	delete(q.suspects, unit)
	t.suspects--
	if isAside(by) {
		q.aside--
	}
}

func (t *queues) forgiveAll(q *queue) {
	t.suspects -= len(q.suspects)
	q.suspects, q.aside = make(map[int64][]Return), 0
}

// returnLeases takes back what the readers of a node hold. Those of a node
// that was removed have left.
func (t *queues) returnLeases(s *state, node string, cause Cause) {
	for _, q := range sorted(&t.table) {
		for _, id := range q.affected(node, cause) {
			q = t.toChange(s, q)
			t.giveBack(q, q.reader(id), cause, s.Now)
			if cause == Removal {
				q.leave(q.reader(id))
			}
		}
	}
}

// nodeGone takes back what the readers of a node hold that was removed. They have left.
func (t *queues) nodeGone(s *state, node string) { t.returnLeases(s, node, Removal) }
