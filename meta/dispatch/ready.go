package dispatch

import (
	"context"
	"time"

	"rankfs/meta/state"
)

// Ready reports whether Next would return at once, and takes nothing. It asks the
// leader, and if wait is set asks again whenever something happened to the queue. No
// such call waits at the leader: there are few connections to it and there may be
// many readers.
func (r *Reader) Ready(ctx context.Context, wait bool) bool {
	for {
		changed := r.machine.QueuesChanged()
		before, _ := r.machine.Queue(r.view)
		if r.pending() != nil {
			return true
		}
		var p PeekReply
		if err := r.cluster.AskLeader(ctx, CallPeek, r.request(), &p); err != nil {
			return ctx.Err() == nil // Next would return this error
		}
		if p.Ready || !wait {
			return p.Ready
		}
		if !r.await(ctx, before, changed, p.After) {
			return false
		}
	}
}

// peekPause is the least time between two peeks of a reader, so that many changes
// cost one.
const peekPause = 20 * time.Millisecond

// await returns when the queue is no longer as it was before, or after a time, and
// false when ctx is done.
func (r *Reader) await(ctx context.Context, before state.Queue, changed <-chan struct{}, after time.Duration) bool {
	timer := time.NewTimer(min(max(after, peekPause), patience))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-changed:
		}
		changed = r.machine.QueuesChanged()
		if now, _ := r.machine.Queue(r.view); now == before {
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
