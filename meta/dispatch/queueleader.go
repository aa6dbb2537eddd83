package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// A Group is the agreement of the nodes, as the leader of queues needs it. It is
// used concurrently.
type Group interface {
	// Leading reports whether this node leads the cluster, and in which term.
	Leading() (term uint64, leads bool)
	// DoFor has the cluster agree to a command for a node that asked this one.
	DoFor(ctx context.Context, node string, c state.Command) (state.Result, error)
}

// Units are the batches that a queue hands out: each step of each rank.
type Units struct {
	Ranks, Steps uint64
	Seed         uint64
	// Holders are the hosts that have bytes of a batch, and how many.
	Holders func(rank, step uint64) map[string]int64
}

// A queueLeader hands out the units of one queue, between two resets of it, for one term of
// this node as the leader. A queue that was dropped and is opened again is another one,
// of perhaps more units, by the same name.
//
// The scheduler advises, the cluster decides, and the scheduler learns what was
// decided in one way only: whenever something may have happened to a reader, by a
// request of its own or otherwise, observe compares what the scheduler believes with
// the cluster's state. So it does not matter in which order news arrives, or whether
// it arrives at all.
//
// mu guards the scheduler and the tables beside it. It is never held while the
// cluster agrees or a request waits. The scheduler knows readers and nodes by
// numbers; a reader's number is not used again. Readers are bounded by the state
// machine, which has no more of them than state.MaxReaders.
type queueLeader struct {
	group    Group
	machine  queueState
	now      func() time.Duration
	log      *slog.Logger
	term     uint64
	view     string
	sequence uint64 // of the queue: later queues have larger ones
	resets   uint64
	ranks    uint64

	mu struct {
		sync.Mutex
		scheduler *queue.Scheduler
		readers   map[string]int // numbers of those that have not left
		enrolled  int            // numbers given so far
		nodes     map[string]int
		held      map[int]lease // by reader, as agreed on
		changed   chan struct{} // closed when waiting requests should ask the scheduler again
		logged    int           // units set aside that were logged
	}
}

// A lease is a unit that a reader holds, and since when this leader knows.
type lease struct {
	unit  int64
	since time.Duration
}

// begin makes the scheduler, and tells it what was done of the queue. Until it
// returns the queueLeader is its caller's alone.
func (q *queueLeader) begin(past state.QueueState, u Units) error {
	policy, err := queue.ParsePolicy(past.Policy)
	if err != nil {
		return err
	}
	q.view, q.sequence, q.resets, q.ranks = past.View, past.Sequence, past.Resets, u.Ranks
	q.mu.readers, q.mu.nodes = make(map[string]int), make(map[string]int)
	q.mu.held, q.mu.changed = make(map[int]lease), make(chan struct{})
	q.mu.scheduler, err = queue.New(int(past.Units), q.holders(u), policy, past.Seed)
	if err != nil {
		return err
	}
	return q.restore(past)
}

// holders are the nodes that have bytes of a unit, by the names of their hosts.
func (q *queueLeader) holders(all Units) func(unit int) []queue.Holder {
	var byHost meta.Hosts[int]
	for _, n := range q.machine.Nodes() {
		byHost.Add(n.Host, q.number(n.ID))
	}
	return func(unit int) (holders []queue.Holder) {
		u := uint64(unit)
		for host, bytes := range all.Holders(u%q.ranks, u/q.ranks) {
			for _, n := range byHost.Find(host) {
				holders = append(holders, queue.Holder{Node: n, Bytes: bytes})
			}
		}
		return holders
	}
}

// restore tells a new scheduler what was done before it was made.
func (q *queueLeader) restore(past state.QueueState) error {
	now := q.now()
	var leases []queue.Lease
	var readers []queue.History
	for _, w := range past.Readers {
		if w.Left {
			continue
		}
		id := q.enroll(w.ID)
		readers = append(readers, queue.History{Reader: id, Node: q.number(w.Node), Units: int(w.Units), Took: time.Duration(w.Busy)})
		if w.Unit >= 0 {
			q.mu.held[id] = lease{w.Unit, now}
			leases = append(leases, queue.Lease{Unit: int(w.Unit), Reader: id, Since: now})
		}
	}
	if err := q.mu.scheduler.Restore(now, past.Done, leases, readers); err != nil {
		return err
	}
	for _, suspect := range past.Suspects {
		if suspect.Aside() {
			q.setAside(suspect.Unit)
		} else {
			q.mu.scheduler.Postpone(int(suspect.Unit))
		}
	}
	return nil
}

// isCurrent reports whether the queue is still the one that q leads, reset as often.
func (q *queueLeader) isCurrent() bool {
	now, ok := q.machine.Queue(q.view)
	return ok && now.Sequence == q.sequence && now.Resets == q.resets
}

// join makes a reader known to the scheduler, if it is not. mu is held.
func (q *queueLeader) join(reader, node string) (int, error) {
	id, ok := q.mu.readers[reader]
	if ok {
		return id, nil
	}
	id = q.enroll(reader)
	return id, q.mu.scheduler.Join(q.now(), id, q.number(node))
}

// enroll gives a reader a number that no other reader had. mu is held, or begin
// runs.
func (q *queueLeader) enroll(reader string) int {
	id := q.mu.enrolled
	q.mu.enrolled++
	q.mu.readers[reader] = id
	return id
}

// number is the scheduler's number of a node. mu is held, or begin runs.
func (q *queueLeader) number(node string) int {
	n, ok := q.mu.nodes[node]
	if !ok {
		n = len(q.mu.nodes)
		q.mu.nodes[node] = n
	}
	return n
}

// wake has waiting requests ask the scheduler again, if its advice may have changed
// since it had made so many changes. mu is held.
func (q *queueLeader) wake(before uint64) {
	if q.mu.scheduler.Changes() != before {
		close(q.mu.changed)
		q.mu.changed = make(chan struct{})
	}
}

// maxLogged bounds the log's lines about one queue's units: a wrong program may have
// all of them set aside.
const maxLogged = 16

// setAside has the scheduler give a unit to no reader any more, and logs it. mu is
// held, or begin runs.
func (q *queueLeader) setAside(unit int64) {
	suspect, ok := q.machine.Suspect(q.view, unit)
	if !ok || !q.mu.scheduler.SetAside(int(unit)) {
		return
	}
	switch q.mu.logged++; {
	case q.mu.logged < maxLogged:
		q.log.Warn("batch set aside: no reader is given it any more", "queue", q.view,
			"batch", BatchName(uint64(unit), q.ranks), "cause", blame(q.machine, suspect))
	case q.mu.logged == maxLogged:
		q.log.Warn("more batches of a queue are set aside", "queue", q.view, "see", "rankfs queue show")
	}
}
