package dispatch

import (
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// peek says whether take would reply at once. It agrees to nothing, and leaves the
// scheduler's advice for all readers as it was.
func (q *queueLeader) peek(r TakeRequest) (PeekReply, error) {
	if !q.isCurrent() {
		return PeekReply{}, nil // the leader of the queue as it is now has the reply
	}
	q.catchUp()
	c, _, replied := q.resume(r)
	if replied != nil {
		return PeekReply{Ready: true}, nil
	}
	all, _ := q.machine.Queue(q.view)
	if c.Finish && q.ends(r, all) {
		return PeekReply{Ready: true}, nil
	}
	a, err := q.tryNext(r)
	if err != nil {
		return PeekReply{}, err
	}
	// The scheduler takes a reader for busy that would finish its unit by the
	// request. While units are free, such a reader does not wait for long.
	free := all.Done+uint64(all.Held)+uint64(all.Aside) < all.Units
	return PeekReply{Ready: a.Verdict != queue.Wait || c.Finish && free, After: max(0, a.Until-q.now())}, nil
}

// ends reports whether a reader has its reply as soon as it finishes what it holds:
// that this was no longer its own, or that it was the last unit.
func (q *queueLeader) ends(r TakeRequest, all state.Queue) bool {
	w, ok := q.machine.Reader(q.view, r.Reader)
	return !ok || w.Unit < 0 || q.machine.Fate(q.view, w.Unit) == state.Done || all.Done+uint64(all.Aside)+1 >= all.Units
}

// tryNext is the advice that a reader would get. A reader that has not asked yet
// joins for that time only: its file may be closed before it ever asks, which the
// leader would not learn.
func (q *queueLeader) tryNext(r TakeRequest) (queue.Advice, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.mu.scheduler
	id, known := q.mu.readers[r.Reader]
	if !known {
		id = q.mu.enrolled
		q.mu.enrolled++
		if err := s.Join(q.now(), id, q.number(r.Node)); err != nil {
			return queue.Advice{}, err
		}
		defer s.Leave(id)
	}
	a, _, err := q.next(id)
	if err == nil && a.Verdict == queue.Take {
		s.Returned(id, a.Unit)
	}
	return a, err
}
