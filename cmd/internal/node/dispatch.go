package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/meta"
	"rankfs/meta/group"
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
	// Aside, of a queue of which all is done, is how many units are not, since
	// nobody could do them.
	Aside int `json:"aside,omitempty"`
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

// serve answers a question of a node.
func (d *dispatcher) serve(ctx context.Context, from string, request json.RawMessage) (any, error) {
	q, err := d.heard(from, request)
	if err != nil {
		return nil, err
	}
	k, err := d.desk(ctx, q)
	if err != nil {
		return nil, err
	}
	return k.answer(ctx, q)
}

// heard reads a question that is this node's to answer.
func (d *dispatcher) heard(from string, request json.RawMessage) (q question, err error) {
	if err := json.Unmarshal(request, &q); err != nil {
		return q, fmt.Errorf("question %w: %w", meta.ErrInvalid, err)
	}
	if from != "" && from != q.Node {
		return q, meta.Worded(meta.ErrDenied, "node %s is not allowed to take for node %s", from, q.Node)
	}
	if !d.opened.Load() || !d.node.member.group.Leads() {
		return q, meta.Worded(meta.ErrUnavailable, "this node does not lead now")
	}
	return q, nil
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
	if err := s.settle(ctx, nil, q.Rank); err != nil {
		return nil, err
	}
	v := s.view.Load()
	past, err := d.past(ctx, q, v.Cut().Ranks*v.Cut().Steps(), s.asked.Seed)
	if err != nil {
		return nil, err
	}
	m := d.node.member
	k := &desk{agreement: chair{m.group}, state: m.machine, now: d.now, log: d.node.config.Log, term: term}
	return k, k.begin(past, v)
}

// past is what became of a queue so far, which is begun if it was not.
func (d *dispatcher) past(ctx context.Context, q question, units, seed uint64) (state.QueueState, error) {
	m := d.node.member
	_, err := m.group.Do(ctx, &state.OpenQueue{View: q.View, Generation: q.Generation, Units: units, Policy: m.queuePolicy(), Seed: seed})
	if err != nil {
		return state.QueueState{}, err
	}
	past, ok := m.machine.QueueState(q.View)
	if !ok || past.Units != units {
		return past, meta.Worded(meta.ErrNotExist, "queue of %s does not exist any more", q.View)
	}
	return past, nil
}

// queuePolicy is what the cluster is set to use for new queues.
func (m *member) queuePolicy() string {
	return cmp.Or(m.machine.Setting(settingPolicy), queue.PolicyFlow.String())
}

// A chair agrees to steps for the nodes whose readers ask for them, which have
// shown who they are: see serve. Where this node leads no more they ask another.
type chair struct{ *group.Group }

// Do implements agreement.
func (c chair) Do(ctx context.Context, command state.Command) (state.Result, error) {
	if s, ok := command.(*state.Step); ok {
		return c.DoFor(ctx, s.Node, s)
	}
	return c.Group.Do(ctx, command)
}

const settingPolicy = "queue.policy"

func (d *dispatcher) now() time.Duration { return time.Since(d.begin) }

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
			k.catchUp()
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
