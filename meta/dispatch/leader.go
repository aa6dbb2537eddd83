package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// A Config configures a leader.
type Config struct {
	Group   Group
	Machine LeaderState
	// Units says what the queue of a view hands out, for a reader of a rank. It
	// may be called concurrently.
	Units func(ctx context.Context, view string, rank uint64) (Units, error)
	Log   *slog.Logger
}

// A Leader answers the readers of all queues where this node leads the cluster. It
// keeps a queueLeader for each queue that was asked for in this term.
//
// Config is set by Start, and read by requests once started is true; they are refused
// until then. mu guards the table alone: it is not held while a queueLeader is made or
// asked. The table has at most maxQueues; any of them may be dropped and made again.
type Leader struct {
	Config
	started atomic.Bool
	epoch   time.Time // from which schedulers count time

	mu struct {
		sync.Mutex
		queues map[string]*queueLeader // by view
	}
}

// maxQueues bounds the queues whose schedulers a leader keeps in memory.
const maxQueues = 256

// NewLeader makes a leader that is yet to be started: other nodes send requests to a
// node before it is complete.
func NewLeader() *Leader {
	l := &Leader{epoch: time.Now()}
	l.mu.queues = make(map[string]*queueLeader)
	return l
}

// Start has requests answered from now on. It is called once.
func (l *Leader) Start(c Config) {
	l.Config = c
	l.started.Store(true)
}

// Follow has the schedulers follow the cluster's state until ctx is done: readers
// leave and units come back without a request.
func (l *Leader) Follow(ctx context.Context) {
	for {
		changed := l.Machine.QueuesChanged()
		for _, q := range l.queues() {
			q.catchUp()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select { // changes that come together are followed together
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *Leader) queues() (all []*queueLeader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.mu.queues {
		all = append(all, q)
	}
	return all
}

// Take answers CallTake of a node.
func (l *Leader) Take(ctx context.Context, from string, request json.RawMessage) (any, error) {
	r, term, err := l.accept(from, request)
	if err != nil {
		return nil, err
	}
	q, err := l.queue(ctx, r, term)
	if err != nil {
		return nil, err
	}
	return q.take(ctx, r)
}

// Peek answers CallPeek of a node. A queue that was not begun is ready: it has a
// unit for its first reader.
func (l *Leader) Peek(ctx context.Context, from string, request json.RawMessage) (any, error) {
	r, term, err := l.accept(from, request)
	if err != nil {
		return nil, err
	}
	if known, ok := l.Machine.Queue(r.View); !ok || known.Generation != r.Generation {
		return PeekReply{Ready: true}, nil
	}
	q, err := l.queue(ctx, r, term)
	if err != nil {
		return nil, err
	}
	return q.peek(r)
}

// accept reads a request that this node may answer, in the term that it returns.
func (l *Leader) accept(from string, request json.RawMessage) (r TakeRequest, term uint64, err error) {
	if err := json.Unmarshal(request, &r); err != nil {
		return r, 0, fmt.Errorf("request to a queue %w: %w", meta.ErrInvalid, err)
	}
	if from != "" && from != r.Node {
		return r, 0, meta.Worded(meta.ErrDenied, "node %s is not allowed to take for node %s", from, r.Node)
	}
	if l.started.Load() {
		if term, leads := l.Group.Leading(); leads {
			return r, term, nil
		}
	}
	return r, 0, meta.Worded(meta.ErrUnavailable, "this node does not lead now")
}

// queue finds the leader of the queue that is asked for, or makes it from what the
// cluster agreed on.
func (l *Leader) queue(ctx context.Context, r TakeRequest, term uint64) (*queueLeader, error) {
	known, _ := l.Machine.Queue(r.View)
	l.mu.Lock()
	q := l.mu.queues[r.View]
	l.mu.Unlock()
	if q != nil && q.term == term && q.isCurrent() && known.Generation == r.Generation {
		return q, nil
	}
	q, err := l.open(ctx, r, term)
	if err != nil {
		return nil, err
	}
	return l.keep(q), nil
}

// keep puts a new queueLeader into the table, unless another request has made the
// same one meanwhile, and returns the one to use.
func (l *Leader) keep(q *queueLeader) *queueLeader {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.mu.queues[q.view]; now != nil && now.term == q.term && now.sequence == q.sequence && now.resets == q.resets {
		return now
	}
	for view := range l.mu.queues {
		if len(l.mu.queues) < maxQueues {
			break
		}
		delete(l.mu.queues, view)
	}
	l.mu.queues[q.view] = q
	return q
}

// open makes the leader of a queue, which is begun in the cluster if it was not.
func (l *Leader) open(ctx context.Context, r TakeRequest, term uint64) (*queueLeader, error) {
	u, err := l.Units(ctx, r.View, r.Rank)
	if err != nil {
		return nil, err
	}
	past, err := l.past(ctx, r, u)
	if err != nil {
		return nil, err
	}
	q := &queueLeader{group: l.Group, machine: l.Machine, now: l.now, log: l.Log, term: term}
	return q, q.begin(past, u)
}

// past opens a queue, if it is not open yet, and returns its state.
func (l *Leader) past(ctx context.Context, r TakeRequest, u Units) (state.QueueState, error) {
	units := u.Ranks * u.Steps
	open := &state.OpenQueue{View: r.View, Generation: r.Generation, Units: units, Policy: Policy(l.Machine), Seed: u.Seed, UID: r.UID}
	if l.Machine.Version() < state.Signed {
		open.UID = 0
	}
	_, err := l.Group.DoFor(ctx, r.Node, open)
	if err != nil {
		return state.QueueState{}, err
	}
	past, ok := l.Machine.QueueState(r.View)
	if !ok || past.Units != units {
		return past, meta.Worded(meta.ErrNotExist, "queue of %s does not exist any more", r.View)
	}
	return past, nil
}

// now is the time of schedulers.
func (l *Leader) now() time.Duration { return time.Since(l.epoch) }

// PolicySetting is the cluster's setting for Policy.
const PolicySetting = "queue.policy"

// Policy is the policy by which new queues are handed out.
func Policy(m Settings) string {
	return cmp.Or(m.Setting(PolicySetting), queue.PolicyFlow.String())
}
