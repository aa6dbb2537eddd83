package node

import (
	"context"
	"encoding/json"
	"time"

	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// callPeek asks what a question would come to, without asking it. A leader of an
// older version does not know the call; its readers are then always ready.
const callPeek = "/queue/peek"

// A standing answers a peek.
type standing struct {
	Ready bool          `json:"ready,omitempty"` // there is an answer at once
	After time.Duration `json:"after,omitempty"` // ask again then at the latest, if not
}

// Ready asks the leader, and again whenever something happened to the queue. No
// call waits at the leader, as there are few connections to it and many readers
// may wait.
func (t *taker) Ready(ctx context.Context, wait bool) bool {
	m := t.view.node.member
	for {
		changed := m.machine.QueuesChanged()
		before, _ := m.machine.Queue(t.view.asked.String())
		if t.hasLine() {
			return true
		}
		var s standing
		if err := m.group.AskLeader(ctx, callPeek, t.question(), &s); err != nil {
			return ctx.Err() == nil // Next would say so as well
		}
		if s.Ready || !wait {
			return s.Ready
		}
		if !t.pause(ctx, before, changed, s.After) {
			return false
		}
	}
}

func (t *taker) hasLine() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.line != nil
}

// peekPause is how often a reader asks at most: many changes are one.
const peekPause = 20 * time.Millisecond

// pause returns when the queue is no longer as it was before, or after a time,
// and false when nobody wants to know any more.
func (t *taker) pause(ctx context.Context, before state.Queue, changed <-chan struct{}, after time.Duration) bool {
	machine := t.view.node.member.machine
	timer := time.NewTimer(min(max(after, peekPause), pollTime))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-changed:
		}
		changed = machine.QueuesChanged()
		if now, _ := machine.Queue(t.view.asked.String()); now == before {
			continue
		}
		select {
		case <-time.After(peekPause):
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// peek answers a peek of a node. A queue that nobody has begun has something for
// the first who asks.
func (d *dispatcher) peek(ctx context.Context, from string, request json.RawMessage) (any, error) {
	q, err := d.heard(from, request)
	if err != nil {
		return nil, err
	}
	if known, ok := d.node.member.machine.Queue(q.View); !ok || known.Generation != q.Generation {
		return standing{Ready: true}, nil
	}
	k, err := d.desk(ctx, q)
	if err != nil {
		return nil, err
	}
	return k.peek(q)
}

// peek says whether answer would have one at once, and changes nothing.
func (k *desk) peek(q question) (standing, error) {
	if !k.isCurrent() {
		return standing{}, nil // at the desk of the new run
	}
	k.catchUp()
	step, _, told := k.resume(q)
	if told != nil {
		return standing{Ready: true}, nil
	}
	all, _ := k.state.Queue(k.view)
	if step.Finish && k.ends(q, all) {
		return standing{Ready: true}, nil
	}
	a, err := k.tryOut(q)
	if err != nil {
		return standing{}, err
	}
	// Who would be done with a unit before it asks is not as busy as the
	// scheduler thinks: where some are free it is not kept waiting for long.
	free := all.Done+uint64(all.Held)+uint64(all.Aside) < all.Units
	return standing{Ready: a.Verdict != queue.Wait || step.Finish && free, After: max(0, a.Until-k.now())}, nil
}

// ends reports whether there is something to say when a worker finishes what it
// has: that this is no longer its own, or that it was the last.
func (k *desk) ends(q question, all state.Queue) bool {
	w, ok := k.state.Worker(k.view, q.Worker)
	return !ok || w.Unit < 0 || k.state.Fate(k.view, w.Unit) == state.Done || all.Done+uint64(all.Aside)+1 >= all.Units
}

// tryOut is what choose would say. A worker that has not asked yet joins for
// that long: it may be closed without ever asking, and nobody would hear of it.
func (k *desk) tryOut(q question) (queue.Advice, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.mu.scheduler
	id, known := k.mu.workers[q.Worker]
	if !known {
		id = k.mu.enrolled
		k.mu.enrolled++
		if err := s.Join(k.now(), id, k.number(q.Node)); err != nil {
			return queue.Advice{}, err
		}
		defer s.Leave(id)
	}
	a, _, err := k.advise(id)
	if err == nil && a.Verdict == queue.Take {
		s.Returned(id, a.Unit)
	}
	return a, err
}
