package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
	"rankfs/meta/state"
)

const callQueue = "/queue"

// A question is what a reader of a queue asks the leader: it has finished what
// it holds, if Finish, and wants more. The same Turn is the same question.
type question struct {
	View       string `json:"view"`
	Generation uint64 `json:"generation"`
	Worker     string `json:"worker"`
	Node       string `json:"node"`
	Rank       uint64 `json:"rank"`
	Turn       uint64 `json:"turn"`
	Finish     bool   `json:"finish,omitempty"`
	Wait       bool   `json:"wait,omitempty"` // for a unit, if there is none now
}

// A turn is the answer: a unit, or none because all are done, or wait.
type turn struct {
	Unit int64 `json:"unit"`
	Wait bool  `json:"wait,omitempty"`
	Lost bool  `json:"lost,omitempty"` // what was finished counts for somebody else
}

// A dispatcher chooses who gets which batch of a queue, where this node leads.
// All that it knows can be had again from the cluster's state, and what it says
// counts only when the cluster has agreed.
type dispatcher struct {
	node   *Node
	begin  time.Time
	opened atomic.Bool // the node is all there

	mu struct {
		sync.Mutex
		desks map[string]*desk // by view
	}
}

// maxDesks bounds the queues that a leader has in mind; others are made anew.
const maxDesks = 256

func newDispatcher(n *Node) *dispatcher {
	d := &dispatcher{node: n, begin: time.Now()}
	d.mu.desks = make(map[string]*desk)
	return d
}

// A desk is one queue's scheduler. What it calls a worker or a node is a number.
type desk struct {
	view string
	term uint64 // in which this node began to lead
	run  uint64

	mu struct {
		sync.Mutex
		scheduler *queue.Scheduler
		workers   map[string]int
		enrolled  int
		nodes     map[string]int
		held      map[int]int           // the unit of each worker, as agreed on
		since     map[int]time.Duration // a unit was given first, and is not done
		woken     chan struct{}         // closed when somebody who waits should ask again
	}
}

// serve answers a question of a node.
func (d *dispatcher) serve(ctx context.Context, from string, request json.RawMessage) (any, error) {
	var q question
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("question %w: %w", meta.ErrInvalid, err)
	}
	if from != "" && from != q.Node {
		return nil, fmt.Errorf("node %s %w to take for node %s", from, meta.ErrDenied, q.Node)
	}
	if !d.opened.Load() || !d.node.member.group.Leads() {
		return nil, fmt.Errorf("this node %w as leader now", meta.ErrUnavailable)
	}
	k, err := d.desk(ctx, q)
	if err != nil {
		return nil, err
	}
	return k.answer(ctx, d, q)
}

// desk finds the scheduler of a queue, opening it if need be.
func (d *dispatcher) desk(ctx context.Context, q question) (*desk, error) {
	m := d.node.member
	term := m.group.Status().Term
	known, ok := m.machine.Queue(q.View)
	d.mu.Lock()
	k := d.mu.desks[q.View]
	d.mu.Unlock()
	if k != nil && k.term == term && ok && known.Run == k.run && known.Generation == q.Generation {
		return k, nil
	}
	k, err := d.open(ctx, q, term)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.mu.desks[q.View]; now != nil && now.term == term && now.run == k.run && now != k {
		return now, nil // somebody else was faster
	}
	for view := range d.mu.desks {
		if len(d.mu.desks) < maxDesks {
			break
		}
		delete(d.mu.desks, view)
	}
	d.mu.desks[q.View] = k
	return k, nil
}

// open makes a desk from what the cluster knows of a queue.
func (d *dispatcher) open(ctx context.Context, q question, term uint64) (*desk, error) {
	s, err := d.node.open(q.View)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx, q.Rank); err != nil {
		return nil, err
	}
	v, m := s.view.Load(), d.node.member
	units := v.cut.Ranks * v.cut.Steps()
	_, err = m.group.Do(ctx, &state.OpenQueue{
		View: q.View, Generation: q.Generation, Units: units, Policy: d.policy(), Seed: s.asked.Seed,
	})
	if err != nil {
		return nil, err
	}
	held, ok := m.machine.QueueState(q.View)
	if !ok {
		return nil, fmt.Errorf("queue of %s %w any more", q.View, meta.ErrNotExist)
	}
	policy, err := queue.ParsePolicy(held.Policy)
	if err != nil {
		return nil, err
	}
	k := &desk{view: q.View, term: term, run: held.Run}
	k.mu.workers, k.mu.nodes, k.mu.woken = make(map[string]int), make(map[string]int), make(chan struct{})
	k.mu.held, k.mu.since = make(map[int]int), make(map[int]time.Duration)
	byHost := make(map[string][]int)
	for _, n := range m.machine.Nodes() {
		byHost[n.Host] = append(byHost[n.Host], k.number(n.ID))
	}
	k.mu.scheduler, err = queue.New(int(units), func(unit int) (holders []queue.Holder) {
		u := uint64(unit)
		for host, bytes := range v.holders(u%v.cut.Ranks, u/v.cut.Ranks) {
			for _, n := range byHost[host] {
				holders = append(holders, queue.Holder{Node: n, Bytes: bytes})
			}
		}
		return holders
	}, policy, held.Seed)
	if err != nil {
		return nil, err
	}
	return k, k.restore(held, d.now())
}

// policy is what the cluster is set to use for new queues.
func (d *dispatcher) policy() string {
	if p := d.node.member.machine.Setting(settingPolicy); p != "" {
		return p
	}
	return queue.PolicyFlow.String()
}

const settingPolicy = "queue.policy"

func (d *dispatcher) now() time.Duration { return time.Since(d.begin) }

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

// restore tells a new scheduler what was done before it.
func (k *desk) restore(held state.QueueState, now time.Duration) error {
	var leases []queue.Lease
	var workers []queue.History
	for _, w := range held.Workers {
		if w.Left {
			continue
		}
		id := k.enroll(w.ID)
		workers = append(workers, queue.History{Worker: id, Node: k.number(w.Node), Units: int(w.Units), Took: time.Duration(w.Busy)})
		if w.Unit >= 0 {
			k.mu.held[id], k.mu.since[int(w.Unit)] = int(w.Unit), now
			leases = append(leases, queue.Lease{Unit: int(w.Unit), Worker: id, Since: now})
		}
	}
	return k.mu.scheduler.Restore(now, held.Done, leases, workers)
}

// pollTime is how long a question is kept before its reader is told to ask
// again: short against the patience of a call.
const pollTime = 3 * time.Second

// answer finds a unit for a worker and has the cluster agree.
func (k *desk) answer(ctx context.Context, d *dispatcher, q question) (turn, error) {
	until := time.Now().Add(pollTime)
	m := d.node.member
	for {
		w, known := m.machine.Worker(q.View, q.Worker)
		nonce, last, _ := m.machine.LastStep(q.View, q.Worker)
		finish, try := q.Finish, uint64(0)
		if known && nonce>>8 == q.Turn { // this question was asked before
			if a, final := final(last); final {
				return a, nil
			}
			finish, try = false, nonce&0xff+1
		}
		id, err := k.join(d, q, w, known)
		if err != nil {
			return turn{}, err
		}
		advice, wait, err := k.choose(d, id)
		if err != nil {
			return turn{}, err
		}
		take := int64(-1)
		if advice.Verdict == queue.Take {
			take = int64(advice.Unit)
		}
		if take >= 0 || finish || advice.Verdict == queue.Over && !known {
			r, err := m.group.Do(ctx, &state.Step{
				View: q.View, Worker: q.Worker, Node: q.Node, Rank: q.Rank,
				Finish: finish, Take: take, Nonce: q.Turn<<8 | try&0xff,
			})
			if err != nil {
				k.unwanted(id, take)
				return turn{}, err
			}
			k.note(d, id, take, *r.Step)
			if a, final := final(*r.Step); final {
				return a, nil
			}
			if take >= 0 {
				continue // it was refused
			}
		}
		if advice.Verdict == queue.Over {
			return turn{Unit: -1}, nil
		}
		if advice.Verdict == queue.Wait && (!q.Wait || !k.wait(ctx, d, wait, advice.Until, until)) {
			return turn{Unit: -1, Wait: true}, nil
		}
	}
}

// final reports whether a step answers its question: there is a unit, or
// something to tell before there is one.
func final(s state.Stepped) (turn, bool) {
	lost := s.Finish == state.Lost || s.Finish == state.Returned
	return turn{Unit: s.Unit, Lost: lost}, lost || s.Unit >= 0
}

// join makes a worker known to the scheduler.
func (k *desk) join(d *dispatcher, q question, w state.Worker, known bool) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, ok := k.mu.workers[q.Worker]
	if ok {
		return id, nil
	}
	if known && w.Left {
		return 0, fmt.Errorf("reader %s of the queue %w any more: open it again", q.Worker, meta.ErrDenied)
	}
	id = k.enroll(q.Worker)
	return id, k.mu.scheduler.Join(d.now(), id, k.number(q.Node))
}

func (k *desk) choose(d *dispatcher, id int) (queue.Advice, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, now := k.mu.scheduler.Changes(), d.now()
	a, err := k.mu.scheduler.Next(now, id)
	if err == nil && a.Verdict == queue.Take && a.Second {
		if late := k.mu.since[a.Unit] + straggles; now < late {
			k.mu.scheduler.Returned(id, a.Unit)
			a = queue.Advice{Verdict: queue.Wait, Until: late}
			before = k.mu.scheduler.Changes() // nothing is new for the others
		}
	}
	k.wake(before)
	return a, k.mu.woken, err
}

// straggles is how long a reader may take for a batch before another one is
// given it as well. Work that is done twice may have been written twice: a loop
// of a shell does not know how to take it back.
const straggles = 10 * time.Second

// wake lets those ask again who wait, if what they were told has changed since.
// mu is held.
func (k *desk) wake(before uint64) {
	if k.mu.scheduler.Changes() != before {
		close(k.mu.woken)
		k.mu.woken = make(chan struct{})
	}
}

// note tells the scheduler what the cluster agreed on.
func (k *desk) note(d *dispatcher, id int, take int64, s state.Stepped) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.mu.scheduler.Changes()
	now := d.now()
	if s.Finish != "" {
		delete(k.mu.held, id)
	}
	if s.Finished >= 0 {
		delete(k.mu.since, int(s.Finished))
		k.mu.scheduler.Finished(now, id, int(s.Finished))
	}
	switch {
	case s.Unit >= 0:
		k.mu.held[id] = int(s.Unit)
		if _, second := k.mu.since[int(s.Unit)]; !second {
			k.mu.since[int(s.Unit)] = now
		}
		k.mu.scheduler.Began(now, id, int(s.Unit))
	case take >= 0 && s.Refused == state.RefusedDone:
		k.mu.scheduler.Finished(now, id, int(take))
	case take >= 0:
		k.mu.scheduler.Returned(id, int(take))
	}
	k.wake(before)
}

// unwanted takes an offer back of which nobody knows what became.
func (k *desk) unwanted(id int, take int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if take >= 0 {
		k.mu.scheduler.Returned(id, int(take))
	}
}

// wait returns when a worker could be told something else, and false when its
// reader should ask again.
func (k *desk) wait(ctx context.Context, d *dispatcher, woken <-chan struct{}, at time.Duration, until time.Time) bool {
	left := time.Until(until)
	if left <= 0 || !d.node.member.group.Leads() {
		return false
	}
	timer := time.NewTimer(min(left, max(at-d.now(), 10*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// follow has desks know who left and whose work came back.
func (d *dispatcher) follow(ctx context.Context) {
	for {
		changed := d.node.member.machine.QueuesChanged()
		d.mu.Lock()
		var all []*desk
		for _, k := range d.mu.desks {
			all = append(all, k)
		}
		d.mu.Unlock()
		for _, k := range all {
			k.catchUp(d.node.member.machine)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select { // many changes are one
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// catchUp takes note of workers that left and of leases that were returned.
func (k *desk) catchUp(m *state.Machine) {
	workers := m.Workers(k.view)
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.mu.scheduler.Changes()
	for _, w := range workers {
		id, ok := k.mu.workers[w.ID]
		switch {
		case ok && w.Left:
			k.mu.scheduler.Leave(id)
			delete(k.mu.workers, w.ID)
			delete(k.mu.held, id)
		case ok:
			if unit, holds := k.mu.held[id]; holds && int(w.Unit) != unit {
				k.mu.scheduler.Returned(id, unit)
				delete(k.mu.held, id)
				delete(k.mu.since, unit)
			}
		}
	}
	k.wake(before)
}
