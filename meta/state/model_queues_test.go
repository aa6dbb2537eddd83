package state_test

import (
	"rankfs/meta"
	"rankfs/meta/state"
)

type modelQueue struct {
	state.Queue
	finisher map[int64]string
	returns  map[int64][]state.Return
	readers  map[string]*modelReader
}

type modelReader struct {
	state.Reader
	nonce uint64
	last  state.TakenUnit
}

func (m *model) giveBack(cause state.Cause, which func(*modelReader) bool) {
	for _, q := range m.queues {
		for _, id := range sortedKeys(q.readers) {
			if w := q.readers[id]; which(w) {
				q.suspect(w, m.now, cause)
				w.Unit, w.Since = -1, 0
			}
		}
	}
}

func (q *modelQueue) suspect(w *modelReader, now int64, cause state.Cause) {
	by := q.returns[w.Unit]
	for _, r := range by {
		if r.Reader == w.ID {
			return
		}
	}
	if w.Unit >= 0 && q.finisher[w.Unit] == "" && len(by) < 4 {
		q.returns[w.Unit] = append(by, state.Return{Reader: w.ID, Node: w.Node, Rank: w.Rank, At: now, Cause: cause})
	}
}

func (q *modelQueue) info() *state.Queue {
	i, held := q.Queue, make(map[int64]bool)
	i.Done = uint64(len(q.finisher))
	for _, w := range q.readers {
		if w.Unit >= 0 {
			held[w.Unit] = true
		}
		if !w.Left {
			i.Readers++
		}
	}
	i.Held = len(held)
	for _, by := range q.returns {
		if len(by) == 4 {
			i.Aside++
		}
	}
	return &i
}

func (m *model) open(c *state.OpenQueue) (state.Result, error) {
	if err := m.current(datasetOf(c.View), c.Generation); err != nil {
		return state.Result{}, err
	}
	q := m.queues[c.View]
	if q == nil {
		q = &modelQueue{
			Queue: state.Queue{
				View: c.View, Generation: c.Generation, Units: c.Units, Policy: c.Policy, Seed: c.Seed, UID: c.UID,
				Sequence: m.next(), Opened: m.now,
			},
			finisher: make(map[int64]string), returns: make(map[int64][]state.Return), readers: make(map[string]*modelReader),
		}
		m.queues[c.View] = q
	}
	return resultOf("Queue", q.info()), nil
}

func (m *model) step(c *state.TakeUnit) (state.Result, error) {
	q := m.queues[c.View]
	if q == nil {
		return state.Result{}, meta.ErrNotExist
	}
	if err := m.member(c.Node); err != nil {
		return state.Result{}, err
	}
	w := q.readers[c.Reader]
	if w != nil {
		switch {
		case w.Left:
			return state.Result{}, meta.ErrDenied
		case w.Node != c.Node || w.Rank != c.Rank:
			return state.Result{}, meta.ErrInvalid
		case w.nonce == c.Nonce:
			return resultOf("Step", &w.last), nil
		case c.Take >= 0 && !c.Finish && w.Unit >= 0:
			return state.Result{}, meta.ErrInvalid
		}
	}
	v, err := meta.View{}.With(c.View[len(datasetOf(c.View))+1:])
	if err != nil || c.Take >= int64(q.Units) || c.Rank >= v.Ranks {
		return state.Result{}, meta.ErrInvalid
	}
	if c.Take >= 0 && !m.nodes[c.Node].Up {
		return state.Result{}, meta.ErrUnavailable
	}
	if w == nil {
		w = &modelReader{Reader: state.Reader{ID: c.Reader, Node: c.Node, Rank: c.Rank, Unit: -1}}
		q.readers[c.Reader] = w
	}
	r := state.TakenUnit{Unit: -1, Finished: -1}
	if c.Finish {
		r.Finish, r.Finished = state.Returned, w.Unit
		if w.Unit >= 0 {
			r.Finish = state.Lost
			w.Units++
			w.Busy += max(0, m.now-w.Since)
			if q.finisher[w.Unit] == "" {
				q.finisher[w.Unit] = w.ID
				delete(q.returns, w.Unit)
				r.Finish = state.Finished
			}
		}
		w.Unit, w.Since = -1, 0
	}
	if c.Take >= 0 {
		holders := 0
		for _, other := range q.readers {
			if other.Unit == c.Take {
				holders++
			}
		}
		switch {
		case q.finisher[c.Take] != "":
			r.Refused = state.RefusedDone
		case holders >= 2:
			r.Refused = state.RefusedHeld
		case len(q.returns[c.Take]) == 4:
			r.Refused = state.RefusedAside
		default:
			r.Unit, w.Unit, w.Since = c.Take, c.Take, m.now
		}
	}
	w.Seen, w.nonce, w.last = m.now, c.Nonce, r
	return resultOf("Step", &r), nil
}

func (m *model) leave(c *state.LeaveQueue) {
	q := m.queues[c.View]
	if q == nil {
		return
	}
	w := q.readers[c.Reader]
	if w == nil {
		w = &modelReader{Reader: state.Reader{ID: c.Reader, Unit: -1}}
		q.readers[c.Reader] = w
	}
	if !w.Left {
		m.giveBack(state.Closed, func(other *modelReader) bool { return other == w })
		w.Left, w.Seen = true, m.now
	}
}

func (m *model) reset(c *state.ResetQueue) (state.Result, error) {
	q := m.queues[c.View]
	if q == nil {
		return state.Result{}, meta.ErrNotExist
	}
	if c.Resets > q.Resets {
		return state.Result{}, meta.ErrInvalid
	}
	if c.Resets == q.Resets {
		q.Resets++
		clear(q.returns)
		for _, w := range q.readers {
			if !c.Aside {
				w.Unit, w.Since, w.Units, w.Busy = -1, 0, 0, 0
			}
		}
		if !c.Aside {
			clear(q.finisher)
		}
	}
	return resultOf("Queue", q.info()), nil
}
