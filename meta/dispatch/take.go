package dispatch

import (
	"context"
	"time"

	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// patience is how long a request waits at the leader before its reader is told to
// ask again: short against the time that a call may take.
const patience = 3 * time.Second

// askLater has a reader ask again.
var askLater = TakeReply{Unit: -1, Wait: true}

// take finds a unit for a reader and has the cluster agree. It repeats that while
// the cluster decides otherwise than the scheduler advised, and while no unit is
// free and the request may wait.
func (q *queueLeader) take(ctx context.Context, r TakeRequest) (TakeReply, error) {
	until := time.Now().Add(patience)
	for {
		if !q.isCurrent() {
			return askLater, nil // the leader of the queue as it is now has the reply
		}
		c, known, replied := q.resume(r)
		if replied != nil {
			return *replied, nil
		}
		advice, changed, err := q.advise(r)
		if err != nil {
			return TakeReply{}, err
		}
		if advice.Verdict == queue.Take {
			c.Take = int64(advice.Unit)
		}
		if c.Take >= 0 || c.Finish || advice.Verdict == queue.Over && !known {
			taken, err := q.agree(ctx, c)
			if err != nil {
				return TakeReply{}, err
			}
			if reply, final := replyTo(taken); final {
				return reply, nil
			}
			continue // the advice was for a reader that held a unit, or for another state
		}
		switch advice.Verdict {
		case queue.Over:
			return q.over(), nil
		case queue.Wait:
			if !r.Wait || !q.wait(ctx, changed, advice.Until, until) {
				return askLater, nil
			}
		}
	}
}

// resume is the command that a request goes on with, without a unit yet, or the reply
// that it had already. A request may take several commands: their nonces are its number
// and, in the last eight bits, their count.
func (q *queueLeader) resume(r TakeRequest) (c *state.TakeUnit, known bool, replied *TakeReply) {
	c = &state.TakeUnit{
		View: r.View, Reader: r.Reader, Node: r.Node, Rank: r.Rank,
		Finish: r.Finish, Take: -1, Nonce: r.Number << 8,
	}
	nonce, last, known := q.machine.LastTaken(r.View, r.Reader)
	if !known || nonce>>8 != r.Number {
		return c, known, nil
	}
	if reply, final := replyTo(last); final {
		return nil, known, &reply
	}
	c.Finish = false
	c.Nonce |= (nonce + 1) & 0xff
	return c, known, nil
}

// replyTo makes a result the reply, if it is final: it took a unit, or the reader
// has to be told that the unit before was lost to it.
func replyTo(s state.TakenUnit) (reply TakeReply, final bool) {
	lost := s.Finish == state.Lost || s.Finish == state.Returned
	return TakeReply{Unit: s.Unit, Lost: lost}, lost || s.Unit >= 0
}

// over is the last reply of a queue.
func (q *queueLeader) over() TakeReply {
	now, _ := q.machine.Queue(q.view)
	return TakeReply{Unit: -1, Aside: now.Aside}
}

// advise asks the scheduler for a unit. The channel is closed when its advice may
// have changed.
func (q *queueLeader) advise(r TakeRequest) (queue.Advice, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id, err := q.join(r.Reader, r.Node)
	if err != nil {
		return queue.Advice{}, nil, err
	}
	before := q.mu.scheduler.Changes()
	a, withheld, err := q.next(id)
	if withheld {
		before = q.mu.scheduler.Changes() // nothing changed for the others
	}
	q.wake(before)
	return a, q.mu.changed, err
}

// secondAfter is how long a reader may take for a unit before another one is given
// it as well. Work that is done twice may have been written twice: a loop of a shell
// cannot take it back.
const secondAfter = 10 * time.Second

// next is the scheduler's advice for a reader, except that a unit which is worked on
// is withheld from a second reader until secondAfter. mu is held.
func (q *queueLeader) next(id int) (a queue.Advice, withheld bool, err error) {
	now := q.now()
	a, err = q.mu.scheduler.Next(now, id)
	if err != nil || a.Verdict != queue.Take || !a.Second {
		return a, false, err
	}
	due := q.heldSince(int64(a.Unit)) + secondAfter
	if now >= due {
		return a, false, nil
	}
	q.mu.scheduler.Returned(id, a.Unit)
	return queue.Advice{Verdict: queue.Wait, Until: due}, true, nil
}

// heldSince is when the one reader that holds a unit was given it. mu is held.
func (q *queueLeader) heldSince(unit int64) time.Duration {
	for _, l := range q.mu.held {
		if l.unit == unit {
			return l.since
		}
	}
	return 0
}

// wait returns when the scheduler's advice may be another, and false when the reader
// has to ask again.
func (q *queueLeader) wait(ctx context.Context, changed <-chan struct{}, at time.Duration, until time.Time) bool {
	left := time.Until(until)
	if _, leads := q.group.Leading(); left <= 0 || !leads {
		return false
	}
	timer := time.NewTimer(min(left, max(at-q.now(), 10*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}
