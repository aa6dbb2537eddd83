package state

import (
	"fmt"

	"rankfs/meta"
)

// OpenQueue opens the queue of a view. The first wins: the result is the
// queue as it is, and it counts among those of the user who opened it. When there are too
// many, those go of which nothing would be lost.
type OpenQueue struct {
	Entry
	View       string
	Generation uint64
	Units      uint64
	Policy     string
	Seed       uint64 `json:",omitempty"`
	UID        uint32 `json:",omitempty"` // the user's who opens it; root is not counted
}

func (c *OpenQueue) since() int { return signedIf(c.UID != 0) }

func (c *OpenQueue) check() error {
	if c.Units > MaxUnits {
		return fmt.Errorf("queue of %d batches %w: use larger batches, %d at most", c.Units, meta.ErrInvalid, MaxUnits)
	}
	_, err := checkView(c.View)
	return first(err, checkText("policy", c.Policy, maxText))
}

// queueResult is what an OpenQueue or a ResetQueue came to.
type queueResult struct{ Queue *Queue }

// Queue is the queue as it is now, of OpenQueue and ResetQueue.
func (r Result) Queue() *Queue { return came[queueResult](r).Queue }

func (c *OpenQueue) comesTo(r Result) bool  { return r.Queue() != nil }
func (c *ResetQueue) comesTo(r Result) bool { return r.Queue() != nil }

func (c *OpenQueue) apply(s *state) (Result, error) {
	v, err := checkView(c.View)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.datasets().at(v.Dataset, c.Generation); err != nil {
		return Result{}, err
	}
	if q, ok := s.queues().get(c.View); ok {
		return Result{queueResult{q.info()}}, nil
	}
	if err := s.queues().makeRoom(s, c.Units, c.UID); err != nil {
		return Result{}, fmt.Errorf("open queue of %s: %w", c.View, err)
	}
	q := newQueue(Queue{
		View: c.View, Generation: c.Generation, Units: c.Units, Policy: c.Policy, Seed: c.Seed, UID: c.UID,
		Sequence: s.next(), Opened: s.Now,
	}, v.Ranks, s.era)
	s.queues().add(q)
	s.changed.queues = true
	return Result{queueResult{q.info()}}, nil
}

// ResetQueue begins a queue again if it was reset so often before: a command that comes
// late does not reset it once more. All units are undone; or, with Aside, those
// that were set aside, or might soon have been, are given to readers again, and
// all else stays as it is.
type ResetQueue struct {
	Entry
	View   string
	Resets uint64 `json:"Run"`
	Aside  bool   `json:",omitempty"`
}

func (c *ResetQueue) check() error {
	_, err := checkView(c.View)
	return err
}

func (c *ResetQueue) apply(s *state) (Result, error) {
	q, err := s.queues().opened(c.View)
	if err != nil {
		return Result{}, err
	}
	switch {
	case c.Resets > q.Resets:
		return Result{}, fmt.Errorf("reset %d of the queue of %s %w: it was reset %d times", c.Resets+1, c.View, meta.ErrInvalid, q.Resets)
	case c.Resets == q.Resets:
		q = s.queues().toChange(s, q)
		q.Resets++
		s.queues().forgiveAll(q)
		if !c.Aside {
			q.undo()
		}
	}
	return Result{queueResult{q.info()}}, nil
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
		s.queues().remove(s, q)
	}
	return Result{}, nil
}
