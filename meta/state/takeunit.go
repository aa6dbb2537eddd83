package state

import (
	"fmt"

	"rankfs/meta"
)

// TakeUnit is the request of a reader for the next unit: it finishes the unit that
// it holds, and takes the unit that the scheduler has chosen. Either may be
// left out. The same request again, told by its nonce, has the same result.
type TakeUnit struct {
	Entry
	View   string
	Reader string `json:"Worker"`
	Node   string
	Rank   uint64
	Finish bool  `json:",omitempty"`
	Take   int64 // -1 for nothing
	Nonce  uint64
}

func (c *TakeUnit) about(*state) string { return c.Node }

func (c *TakeUnit) check() error {
	if c.Take < -1 || c.Take >= MaxUnits || c.Rank >= meta.MaxRanks || len(c.View) > 2*maxText {
		return fmt.Errorf("request of rank %d for unit %d %w", c.Rank, c.Take, meta.ErrInvalid)
	}
	return first(checkReader(c.Reader), checkID(c.Node))
}

// unitResult is what a TakeUnit came to.
type unitResult struct {
	Taken *TakenUnit `json:"Step"`
}

// Taken is what was taken and finished, of TakeUnit.
func (r Result) Taken() *TakenUnit { return came[unitResult](r).Taken }

func (c *TakeUnit) comesTo(r Result) bool { return r.Taken() != nil }

func (c *TakeUnit) apply(s *state) (Result, error) {
	q, err := s.queues().opened(c.View)
	if err != nil {
		return Result{}, err
	}
	w := q.readers[c.Reader]
	if err := c.mayTake(s, q, w); err != nil {
		return Result{}, fmt.Errorf("queue of %s: %w", c.View, err)
	}
	if w != nil && w.Nonce == c.Nonce {
		last := w.Last
		return Result{unitResult{&last}}, nil
	}
	q, mine, err := s.queues().withReader(s, q, Reader{ID: c.Reader, Node: c.Node, Rank: c.Rank})
	if err != nil {
		return Result{}, err
	}
	taken := c.take(s, q, mine)
	return Result{unitResult{&taken}}, nil
}

// mayTake refuses what a reader cannot ask for. A request that was answered already
// is not asked what it may.
func (c *TakeUnit) mayTake(s *state, q *queue, w *reader) error {
	n, err := s.nodes().member(c.Node)
	switch {
	case err != nil:
		return err
	case w != nil && w.Left:
		return fmt.Errorf("reader %q %w: it has left; open the queue again", c.Reader, meta.ErrDenied)
	case w != nil && (w.Node != c.Node || w.Rank != c.Rank):
		return fmt.Errorf("reader %q %w: it is of rank %d on node %s", c.Reader, meta.ErrInvalid, w.Rank, w.Node)
	case w != nil && w.Nonce == c.Nonce:
		return nil
	case c.Take >= int64(q.Units):
		return fmt.Errorf("unit %d %w: there are %d", c.Take, meta.ErrInvalid, q.Units)
	case c.Rank >= q.ranks:
		return fmt.Errorf("rank %d %w: there are %d", c.Rank, meta.ErrInvalid, q.ranks)
	case c.Take >= 0 && !c.Finish && w != nil && w.Unit >= 0:
		return meta.Worded(meta.ErrInvalid, "unit %d cannot be taken while reader %q holds unit %d: finish it", c.Take, c.Reader, w.Unit)
	case c.Take >= 0 && !n.Up:
		return fmt.Errorf("node %s %w: it was seen down; try again when it is seen up", c.Node, meta.ErrUnavailable)
	}
	return nil
}

// take finishes a unit, takes another, and remembers the result.
func (c *TakeUnit) take(s *state, q *queue, w *reader) TakenUnit {
	r := TakenUnit{Unit: -1, Finished: -1}
	if c.Finish {
		r.Finished = w.Unit
		r.Finish = s.queues().finish(q, w, s.Now)
	}
	if c.Take >= 0 {
		if r.Refused = q.take(w, c.Take, s.Now); r.Refused == "" {
			r.Unit = c.Take
		}
	}
	w.Seen, w.Nonce, w.Last = s.Now, c.Nonce, r
	return r
}

func (t *queues) finish(q *queue, w *reader, now int64) Finish {
	unit := w.Unit
	if unit < 0 {
		return Returned
	}
	w.Units++
	w.Busy += max(0, now-w.Since)
	q.release(w)
	if q.units.has(unit) {
		return Lost
	}
	q.units.set(unit)
	t.forgive(q, unit)
	return Finished
}

func (q *queue) take(w *reader, unit, now int64) Refusal {
	switch {
	case q.units.has(unit):
		return RefusedDone
	case q.holders[unit] >= 2:
		return RefusedHeld
	case isAside(q.suspects[unit]):
		return RefusedAside
	}
	q.holders[unit]++
	w.Unit, w.Since = unit, now
	return ""
}
