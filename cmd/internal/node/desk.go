package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

// A desk is one queue's scheduler, where this node leads. What that calls a
// worker or a node is a number.
//
// The scheduler advises, the cluster decides, and the scheduler hears of what was
// decided in one way only (see): whenever something may have happened to a worker,
// by a question of its own or otherwise, the desk looks what the cluster's state
// says of it. So it does not matter who hears of what first, or not at all.
type desk struct {
	agreement
	state *state.Machine
	now   func() time.Duration
	log   *slog.Logger
	term  uint64 // in which this node began to lead
	view  string
	run   uint64
	ranks uint64

	mu struct {
		sync.Mutex
		scheduler *queue.Scheduler
		workers   map[string]int
		enrolled  int
		nodes     map[string]int
		held      map[int]hold  // by worker, as agreed on
		woken     chan struct{} // closed when somebody who waits should ask again
		logged    int           // units set aside that stand in the log
	}
}

// An agreement is how a desk has the cluster agree.
type agreement interface {
	Do(context.Context, state.Command) (state.Result, error)
	Leads() bool
}

// A hold is a unit that a worker has, and when this desk heard of that.
type hold struct {
	unit  int64
	since time.Duration
}

// begin makes the scheduler of a queue of which so much was done before. Nobody
// else has k.
func (k *desk) begin(past state.QueueState, v *view) error {
	policy, err := queue.ParsePolicy(past.Policy)
	if err != nil {
		return err
	}
	k.view, k.run, k.ranks = past.View, past.Run, v.Cut().Ranks
	k.mu.workers, k.mu.nodes = make(map[string]int), make(map[string]int)
	k.mu.held, k.mu.woken = make(map[int]hold), make(chan struct{})
	k.mu.scheduler, err = queue.New(int(past.Units), k.holders(v), policy, past.Seed)
	if err != nil {
		return err
	}
	return k.restore(past)
}

// enroll gives a worker a number that no other had. mu is held, or nobody else
// has k.
func (k *desk) enroll(worker string) int {
	id := k.mu.enrolled
	k.mu.enrolled++
	k.mu.workers[worker] = id
	return id
}

// number is what the scheduler calls a node. mu is held, or nobody else has k.
func (k *desk) number(node string) int {
	n, ok := k.mu.nodes[node]
	if !ok {
		n = len(k.mu.nodes)
		k.mu.nodes[node] = n
	}
	return n
}

// holders asks the plan who has the bytes of a unit, for a new scheduler.
func (k *desk) holders(v *view) func(unit int) []queue.Holder {
	var byHost meta.Hosts[int]
	for _, n := range k.state.Nodes() {
		byHost.Add(n.Host, k.number(n.ID))
	}
	return func(unit int) (holders []queue.Holder) {
		u := uint64(unit)
		for host, bytes := range v.holders(u%k.ranks, u/k.ranks) {
			for _, n := range byHost.Find(host) {
				holders = append(holders, queue.Holder{Node: n, Bytes: bytes})
			}
		}
		return holders
	}
}

// restore tells a new scheduler what was done before it. Nobody else has k.
func (k *desk) restore(past state.QueueState) error {
	now, s := k.now(), k.mu.scheduler
	var leases []queue.Lease
	var workers []queue.History
	for _, w := range past.Workers {
		if w.Left {
			continue
		}
		id := k.enroll(w.ID)
		workers = append(workers, queue.History{Worker: id, Node: k.number(w.Node), Units: int(w.Units), Took: time.Duration(w.Busy)})
		if w.Unit >= 0 {
			k.mu.held[id] = hold{w.Unit, now}
			leases = append(leases, queue.Lease{Unit: int(w.Unit), Worker: id, Since: now})
		}
	}
	if err := s.Restore(now, past.Done, leases, workers); err != nil {
		return err
	}
	for _, suspect := range past.Suspects {
		if suspect.Aside() {
			k.setAside(suspect.Unit)
		} else {
			s.Postpone(int(suspect.Unit))
		}
	}
	return nil
}

// pollTime is how long a question is kept before its reader is told to ask
// again: short against the patience of a call.
const pollTime = 3 * time.Second

// later has a reader ask again.
var later = turn{Unit: -1, Wait: true}

// answer finds a unit for a worker and has the cluster agree.
func (k *desk) answer(ctx context.Context, q question) (turn, error) {
	until := time.Now().Add(pollTime)
	for {
		if !k.isCurrent() {
			return later, nil // at the desk of the new run
		}
		step, known, told := k.resume(q)
		if told != nil {
			return *told, nil
		}
		advice, woken, err := k.choose(q)
		if err != nil {
			return turn{}, err
		}
		if advice.Verdict == queue.Take {
			step.Take = int64(advice.Unit)
		}
		if step.Take >= 0 || step.Finish || advice.Verdict == queue.Over && !known {
			stepped, err := k.agree(ctx, step)
			if err != nil {
				return turn{}, err
			}
			if a, final := final(stepped); final {
				return a, nil
			}
		}
		switch advice.Verdict {
		case queue.Over:
			return k.over(), nil
		case queue.Wait:
			if !q.Wait || !k.wait(ctx, woken, advice.Until, until) {
				return later, nil
			}
		}
	}
}

// isCurrent reports whether the queue is still in the run that the desk knows.
func (k *desk) isCurrent() bool {
	now, ok := k.state.Queue(k.view)
	return ok && now.Run == k.run
}

// resume is the step to go on with a question, without a unit, or what it was
// told already.
func (k *desk) resume(q question) (step *state.Step, known bool, told *turn) {
	step = &state.Step{
		View: q.View, Worker: q.Worker, Node: q.Node, Rank: q.Rank,
		Finish: q.Finish, Take: -1, Nonce: q.Turn << 8,
	}
	nonce, last, known := k.state.LastStep(q.View, q.Worker)
	if !known || nonce>>8 != q.Turn {
		return step, known, nil
	}
	if a, final := final(last); final {
		return nil, known, &a
	}
	step.Finish = false
	step.Nonce |= (nonce + 1) & 0xff
	return step, known, nil
}

// final reports whether a step answers its question: there is a unit, or
// something to tell before there is one.
func final(s state.Stepped) (turn, bool) {
	lost := s.Finish == state.Lost || s.Finish == state.Returned
	return turn{Unit: s.Unit, Lost: lost}, lost || s.Unit >= 0
}

// over is the last answer: how much of the queue nobody can finish.
func (k *desk) over() turn {
	q, _ := k.state.Queue(k.view)
	return turn{Unit: -1, Aside: q.Aside}
}

// choose asks the scheduler, which hears of the worker if it has not yet.
func (k *desk) choose(q question) (queue.Advice, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, err := k.join(q.Worker, q.Node)
	if err != nil {
		return queue.Advice{}, nil, err
	}
	before := k.mu.scheduler.Changes()
	a, refused, err := k.advise(id)
	if refused {
		before = k.mu.scheduler.Changes() // nothing is new for the others
	}
	k.wake(before)
	return a, k.mu.woken, err
}

// advise is what the scheduler says, but that a unit which is at work has time
// before it is given a second time; it reports whether that was so. mu is held.
func (k *desk) advise(id int) (a queue.Advice, refused bool, err error) {
	now := k.now()
	a, err = k.mu.scheduler.Next(now, id)
	if err != nil || a.Verdict != queue.Take || !a.Second {
		return a, false, err
	}
	late := k.begun(int64(a.Unit)) + straggles
	if now >= late {
		return a, false, nil
	}
	k.mu.scheduler.Returned(id, a.Unit)
	return queue.Advice{Verdict: queue.Wait, Until: late}, true, nil
}

// straggles is how long a reader may take for a batch before another one is
// given it as well. Work that is done twice may have been written twice: a loop
// of a shell does not know how to take it back.
const straggles = 10 * time.Second

// begun is when the only one who has a unit was given it. mu is held.
func (k *desk) begun(unit int64) time.Duration {
	for _, h := range k.mu.held {
		if h.unit == unit {
			return h.since
		}
	}
	return 0
}

// join is the number of a worker. mu is held.
func (k *desk) join(worker, node string) (int, error) {
	id, ok := k.mu.workers[worker]
	if ok {
		return id, nil
	}
	id = k.enroll(worker)
	return id, k.mu.scheduler.Join(k.now(), id, k.number(node))
}

// wake lets those ask again who wait, if what they were told has changed since.
// mu is held.
func (k *desk) wake(before uint64) {
	if k.mu.scheduler.Changes() != before {
		close(k.mu.woken)
		k.mu.woken = make(chan struct{})
	}
}

// agree has the cluster agree to a step. Whether it does, does not, or nobody
// knows, the desk sees what came of it.
func (k *desk) agree(ctx context.Context, s *state.Step) (state.Stepped, error) {
	r, err := k.Do(ctx, s)
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.mu.scheduler.Changes()
	k.see(s.Worker)
	if id, ok := k.mu.workers[s.Worker]; ok && s.Take >= 0 && !k.holds(id, s.Take) {
		k.drop(id, s.Take)
	}
	k.wake(before)
	if err != nil {
		return state.Stepped{}, err
	}
	return *r.Step, nil
}

// holds reports whether the desk has seen that a worker has a unit. mu is held.
func (k *desk) holds(id int, unit int64) bool {
	h, ok := k.mu.held[id]
	return ok && h.unit == unit
}

// see tells the scheduler what the cluster says of a worker, as far as that is
// news. mu is held: what one looked at and then waited for it might be old.
func (k *desk) see(worker string) {
	w, ok := k.state.Worker(k.view, worker)
	if !ok {
		return
	}
	if _, known := k.mu.workers[worker]; !known && w.Left {
		return
	}
	id, err := k.join(worker, w.Node)
	if err != nil {
		return // of a node that no scheduler can count, and that was never given anything
	}
	if had, ok := k.mu.held[id]; ok && had.unit != w.Unit {
		delete(k.mu.held, id)
		k.drop(id, had.unit)
	}
	switch {
	case w.Left:
		k.mu.scheduler.Leave(id)
		delete(k.mu.workers, worker)
	case w.Unit >= 0 && !k.holds(id, w.Unit):
		k.mu.held[id] = hold{w.Unit, k.now()}
		k.mu.scheduler.Began(k.now(), id, int(w.Unit))
	}
}

// drop tells the scheduler that a worker has not got a unit, or not any more, and
// what became of that. mu is held.
func (k *desk) drop(id int, unit int64) {
	switch k.state.Fate(k.view, unit) {
	case state.Done:
		k.mu.scheduler.Finished(k.now(), id, int(unit))
		return
	case state.SetAside:
		k.setAside(unit)
	}
	k.mu.scheduler.Returned(id, int(unit))
}

// mostLogged bounds the lines in the log about one queue's units: with a wrong
// program all of them may be set aside.
const mostLogged = 16

// setAside has the scheduler give a unit to nobody any more, and says so. mu is
// held, or nobody else has k.
func (k *desk) setAside(unit int64) {
	suspect, ok := k.state.Suspect(k.view, unit)
	if !ok || !k.mu.scheduler.SetAside(int(unit)) {
		return
	}
	switch k.mu.logged++; {
	case k.mu.logged < mostLogged:
		k.log.Warn("batch set aside: no reader is given it any more", "queue", k.view,
			"batch", unitName(uint64(unit), k.ranks), "cause", blame(k.state, suspect))
	case k.mu.logged == mostLogged:
		k.log.Warn("more batches of a queue are set aside", "queue", k.view, "see", "rankfs queue show")
	}
}

// wait returns when a worker could be told something else, and false when its
// reader should ask again.
func (k *desk) wait(ctx context.Context, woken <-chan struct{}, at time.Duration, until time.Time) bool {
	left := time.Until(until)
	if left <= 0 || !k.Leads() {
		return false
	}
	timer := time.NewTimer(min(left, max(at-k.now(), 10*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// catchUp takes note of what happened without a question: of workers that left,
// of units that were given back.
func (k *desk) catchUp() {
	workers := k.state.Workers(k.view)
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.mu.scheduler.Changes()
	for _, w := range workers {
		k.see(w.ID)
	}
	k.wake(before)
}
