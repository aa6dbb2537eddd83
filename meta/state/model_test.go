package state_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A model is the rules once more, as plainly as they can be said: no sharing,
// no numbers for names, no bounds.
type model struct {
	now      int64
	sequence uint64
	cluster  state.Cluster
	tokens   map[string]state.Token
	nodes    map[string]state.Node
	removed  map[string]bool
	latest   uint64 // generation
	datasets map[string]state.Dataset
	jobs     map[string]map[uint64][2]string
	plans    map[string]state.Plan
	queues   map[string]*modelQueue
	settings map[string]string
	uses     map[string]int // of tokens, ever
}

type modelQueue struct {
	state.Queue
	finisher map[int64]string
	returns  map[int64][]state.Return
	workers  map[string]*modelWorker
}

type modelWorker struct {
	state.Worker
	nonce uint64
	last  state.Stepped
}

func newModel() *model {
	return &model{
		tokens: make(map[string]state.Token), nodes: make(map[string]state.Node), removed: make(map[string]bool),
		datasets: make(map[string]state.Dataset),
		jobs:     make(map[string]map[uint64][2]string), plans: make(map[string]state.Plan),
		queues: make(map[string]*modelQueue), settings: make(map[string]string), uses: make(map[string]int),
	}
}

func datasetOf(view string) string {
	name, _, _ := meta.SplitView(view)
	return name
}

func jobName(dataset string, ranks uint64) string { return fmt.Sprintf("%s@%d", dataset, ranks) }

func (m *model) next() uint64 {
	m.sequence++
	return m.sequence
}

func (m *model) apply(c state.Command, at int64) (state.Result, error) {
	m.now = max(m.now, at)
	for h, t := range m.tokens {
		if t.Expires <= m.now {
			delete(m.tokens, h)
		}
	}
	switch c := c.(type) {
	case *state.Found:
		if m.cluster != (state.Cluster{}) && m.cluster != c.Cluster {
			return state.Result{}, meta.ErrExist
		}
		m.cluster = c.Cluster
	case *state.Token:
		return state.Result{}, m.token(c)
	case *state.DropToken:
		t, ok := m.tokens[c.Hash]
		if !ok {
			return state.Result{}, meta.ErrNotExist
		}
		t.Used = t.Uses
		m.tokens[c.Hash] = t
	case *state.Admit:
		return m.admit(c)
	case *state.Move:
		return state.Result{}, m.change(c.ID, func(n *state.Node) { n.Addr = c.Addr })
	case *state.Drain:
		return state.Result{}, m.change(c.ID, func(n *state.Node) { n.Drained = c.Drained })
	case *state.Health:
		if m.nodes[c.ID].Life != c.Life {
			return state.Result{}, m.member(c.ID)
		}
		err := m.change(c.ID, func(n *state.Node) { n.Up = c.Up })
		if err == nil && !c.Up {
			m.giveBack(state.Down, func(w *modelWorker) bool { return w.Node == c.ID })
		}
		return state.Result{}, err
	case *state.Begin:
		again := m.nodes[c.ID].Life == c.Life
		err := m.change(c.ID, func(n *state.Node) { n.Addr, n.Life, n.Up = c.Addr, c.Life, n.Up || !again })
		if err == nil && !again {
			m.giveBack(state.Down, func(w *modelWorker) bool { return w.Node == c.ID })
		}
		return state.Result{}, err
	case *state.Remove:
		return state.Result{}, m.remove(c)
	case *state.PutDataset:
		return m.put(c)
	case *state.RemoveDataset:
		d, ok := m.datasets[c.Name]
		if ok && d.Generation != c.Generation {
			return state.Result{}, meta.ErrStale
		}
		delete(m.datasets, c.Name)
		m.forget(c.Name)
	case *state.Claim:
		return m.claim(c)
	case *state.Pin:
		return m.pin(c)
	case *state.Unpin:
		delete(m.plans, c.View)
	case *state.OpenQueue:
		return m.open(c)
	case *state.Step:
		return m.step(c)
	case *state.LeaveQueue:
		if q := m.queues[c.View]; q != nil {
			w := q.workers[c.Worker]
			if w == nil {
				w = &modelWorker{Worker: state.Worker{ID: c.Worker, Unit: -1}}
				q.workers[c.Worker] = w
			}
			if !w.Left {
				m.giveBack(state.Closed, func(other *modelWorker) bool { return other == w })
				w.Left, w.Seen = true, m.now
			}
		}
	case *state.ResetQueue:
		q := m.queues[c.View]
		if q == nil {
			return state.Result{}, meta.ErrNotExist
		}
		if c.Run > q.Run {
			return state.Result{}, meta.ErrInvalid
		}
		if c.Run == q.Run {
			q.Run++
			clear(q.returns)
			for _, w := range q.workers {
				if !c.Aside {
					w.Unit, w.Since, w.Units, w.Busy = -1, 0, 0, 0
				}
			}
			if !c.Aside {
				clear(q.finisher)
			}
		}
		return state.Result{Queue: q.info()}, nil
	case *state.DropQueue:
		delete(m.queues, c.View)
	case *state.Setting:
		m.settings[c.Key] = c.Value
		if c.Value == "" {
			delete(m.settings, c.Key)
		}
	}
	return state.Result{}, nil
}

func (m *model) token(c *state.Token) error {
	old, ok := m.tokens[c.Hash]
	switch {
	case ok && (old.Expires != c.Expires || old.Uses != c.Uses):
		return meta.ErrExist
	case !ok && c.Expires <= m.now:
		return meta.ErrInvalid
	case !ok:
		m.tokens[c.Hash] = *c
		m.uses[c.Hash] = 0
	}
	return nil
}

func (m *model) admit(c *state.Admit) (state.Result, error) {
	n, ok := m.nodes[c.Node.ID]
	switch {
	case ok && n.Key != c.Node.Key:
		return state.Result{}, meta.ErrExist
	case ok:
		return state.Result{Node: &n}, nil
	case m.cluster == state.Cluster{} || m.removed[c.Node.ID]:
		return state.Result{}, meta.ErrDenied
	case len(m.nodes) > 0:
		t, ok := m.tokens[c.TokenHash]
		if !ok || t.Used >= t.Uses {
			return state.Result{}, meta.ErrDenied
		}
		t.Used++
		m.uses[t.Hash]++
		m.tokens[t.Hash] = t
	}
	n = c.Node
	n.Up, n.Admitted = true, m.now
	m.nodes[n.ID] = n
	return state.Result{Node: &n}, nil
}

func (m *model) member(id string) error {
	switch _, ok := m.nodes[id]; {
	case ok:
		return nil
	case m.removed[id]:
		return meta.ErrDenied
	}
	return meta.ErrNotExist
}

func (m *model) change(id string, f func(*state.Node)) error {
	n := m.nodes[id]
	f(&n)
	if err := m.member(id); err != nil {
		return err
	}
	m.nodes[id] = n
	return nil
}

func (m *model) remove(c *state.Remove) error {
	if m.removed[c.ID] {
		return nil
	}
	if err := m.member(c.ID); err != nil {
		return err
	}
	if len(m.nodes) == 1 {
		return meta.ErrBusy
	}
	delete(m.nodes, c.ID)
	m.removed[c.ID] = true
	ofIt := func(w *modelWorker) bool { return w.Node == c.ID }
	m.giveBack(state.Removal, ofIt)
	for _, q := range m.queues {
		for _, w := range q.workers {
			w.Left = w.Left || ofIt(w)
		}
	}
	return nil
}

func (m *model) giveBack(cause state.Cause, which func(*modelWorker) bool) {
	for _, q := range m.queues {
		for _, id := range sortedKeys(q.workers) {
			if w := q.workers[id]; which(w) {
				q.suspect(w, m.now, cause)
				w.Unit, w.Since = -1, 0
			}
		}
	}
}

func (q *modelQueue) suspect(w *modelWorker, now int64, cause state.Cause) {
	by := q.returns[w.Unit]
	for _, r := range by {
		if r.Worker == w.ID {
			return
		}
	}
	if w.Unit >= 0 && q.finisher[w.Unit] == "" && len(by) < 4 {
		q.returns[w.Unit] = append(by, state.Return{Worker: w.ID, Node: w.Node, Rank: w.Rank, At: now, Cause: cause})
	}
}

func (m *model) put(c *state.PutDataset) (state.Result, error) {
	old, ok := m.datasets[c.Name]
	same := old.Index == c.Index && old.IndexBytes == c.IndexBytes && string(old.Record) == string(c.Record)
	if ok && same && slices.Contains([]uint64{0, old.Generation, old.Before}, c.Generation) {
		return state.Result{Generation: old.Generation}, nil
	}
	if ok && c.Generation == 0 {
		return state.Result{}, meta.ErrExist
	}
	if old.Generation != c.Generation {
		return state.Result{}, meta.ErrStale
	}
	m.latest++
	m.datasets[c.Name] = state.Dataset{
		Name: c.Name, Record: c.Record, Index: c.Index, IndexBytes: c.IndexBytes,
		Generation: m.latest, Before: old.Generation, Registered: m.now,
	}
	m.forget(c.Name)
	return state.Result{Generation: m.latest}, nil
}

// forget drops what was of the generation before.
func (m *model) forget(name string) {
	for _, ranks := range []uint64{2, 4} {
		delete(m.jobs, jobName(name, ranks))
	}
	for v := range m.plans {
		if datasetOf(v) == name {
			delete(m.plans, v)
		}
	}
	for v := range m.queues {
		if datasetOf(v) == name {
			delete(m.queues, v)
		}
	}
}

func (m *model) current(name string, generation uint64) error {
	d, ok := m.datasets[name]
	if !ok {
		return meta.ErrNotExist
	}
	if d.Generation != generation {
		return meta.ErrStale
	}
	return nil
}

func (m *model) claim(c *state.Claim) (state.Result, error) {
	if err := m.current(c.Dataset, c.Generation); err != nil {
		return state.Result{}, err
	}
	if err := m.member(c.Node); err != nil {
		return state.Result{}, err
	}
	j := m.jobs[jobName(c.Dataset, c.Ranks)]
	if j == nil {
		j = make(map[uint64][2]string)
		m.jobs[jobName(c.Dataset, c.Ranks)] = j
		m.next()
	}
	if j[c.Rank][0] != c.Node {
		j[c.Rank] = [2]string{c.Node, j[c.Rank][0]}
	}
	return state.Result{Before: j[c.Rank][1]}, nil
}

func (m *model) pin(c *state.Pin) (state.Result, error) {
	name := datasetOf(c.View)
	if err := m.current(name, c.Generation); err != nil {
		return state.Result{}, err
	}
	p, ok := m.plans[c.View]
	if !ok {
		for _, run := range c.Nodes {
			if err := m.member(run.Node); err != nil && !m.removed[run.Node] {
				return state.Result{}, err
			}
		}
		p = state.Plan{
			View: c.View, Generation: c.Generation, Index: m.datasets[name].Index,
			Nodes: c.Nodes, Sequence: m.next(), Pinned: m.now,
		}
		m.plans[c.View] = p
	}
	return state.Result{Plan: &p}, nil
}

func (q *modelQueue) info() *state.Queue {
	i, held := q.Queue, make(map[int64]bool)
	i.Done = uint64(len(q.finisher))
	for _, w := range q.workers {
		if w.Unit >= 0 {
			held[w.Unit] = true
		}
		if !w.Left {
			i.Workers++
		}
	}
	i.Held = len(held)
	for _, by := range q.returns {
		if len(by) == 4 {
			i.Aside++
		}
	}
	return &i
}

func (m *model) open(c *state.OpenQueue) (state.Result, error) {
	if err := m.current(datasetOf(c.View), c.Generation); err != nil {
		return state.Result{}, err
	}
	q := m.queues[c.View]
	if q == nil {
		q = &modelQueue{
			Queue: state.Queue{
				View: c.View, Generation: c.Generation, Units: c.Units, Policy: c.Policy, Seed: c.Seed,
				Sequence: m.next(), Opened: m.now,
			},
			finisher: make(map[int64]string), returns: make(map[int64][]state.Return), workers: make(map[string]*modelWorker),
		}
		m.queues[c.View] = q
	}
	return state.Result{Queue: q.info()}, nil
}

func (m *model) step(c *state.Step) (state.Result, error) {
	q := m.queues[c.View]
	if q == nil {
		return state.Result{}, meta.ErrNotExist
	}
	if err := m.member(c.Node); err != nil {
		return state.Result{}, err
	}
	w := q.workers[c.Worker]
	if w != nil {
		switch {
		case w.Left:
			return state.Result{}, meta.ErrDenied
		case w.Node != c.Node || w.Rank != c.Rank:
			return state.Result{}, meta.ErrInvalid
		case w.nonce == c.Nonce:
			return state.Result{Step: &w.last}, nil
		case c.Take >= 0 && !c.Finish && w.Unit >= 0:
			return state.Result{}, meta.ErrInvalid
		}
	}
	v, err := meta.View{}.With(c.View[len(datasetOf(c.View))+1:])
	if err != nil || c.Take >= int64(q.Units) || c.Rank >= v.Ranks {
		return state.Result{}, meta.ErrInvalid
	}
	if c.Take >= 0 && !m.nodes[c.Node].Up {
		return state.Result{}, meta.ErrUnavailable
	}
	if w == nil {
		w = &modelWorker{Worker: state.Worker{ID: c.Worker, Node: c.Node, Rank: c.Rank, Unit: -1}}
		q.workers[c.Worker] = w
	}
	r := state.Stepped{Unit: -1, Finished: -1}
	if c.Finish {
		r.Finish, r.Finished = state.Returned, w.Unit
		if w.Unit >= 0 {
			r.Finish = state.Lost
			w.Units++
			w.Busy += m.now - w.Since
			if q.finisher[w.Unit] == "" {
				q.finisher[w.Unit] = w.ID
				delete(q.returns, w.Unit)
				r.Finish = state.Finished
			}
		}
		w.Unit, w.Since = -1, 0
	}
	if c.Take >= 0 {
		holders := 0
		for _, other := range q.workers {
			if other.Unit == c.Take {
				holders++
			}
		}
		switch {
		case q.finisher[c.Take] != "":
			r.Refused = state.RefusedDone
		case holders >= 2:
			r.Refused = state.RefusedHeld
		case len(q.returns[c.Take]) == 4:
			r.Refused = state.RefusedAside
		default:
			r.Unit, w.Unit, w.Since = c.Take, c.Take, m.now
		}
	}
	w.Seen, w.nonce, w.last = m.now, c.Nonce, r
	return state.Result{Step: &r}, nil
}

// differ says where a machine is not what the model is.
func (m *model) differ(real *state.Machine) error {
	nodes := real.Nodes()
	if len(nodes) != len(m.nodes) {
		return fmt.Errorf("%d nodes, not %d", len(nodes), len(m.nodes))
	}
	for _, n := range nodes {
		if n != m.nodes[n.ID] {
			return fmt.Errorf("node %+v, not %+v", n, m.nodes[n.ID])
		}
	}
	live := 0
	for _, t := range m.tokens {
		if t.Used < t.Uses {
			live++
		}
	}
	tokens := real.Tokens()
	if len(tokens) != live {
		return fmt.Errorf("tokens %+v, not %+v", tokens, m.tokens)
	}
	for _, t := range tokens {
		if t != m.tokens[t.Hash] {
			return fmt.Errorf("token %+v, not %+v", t, m.tokens[t.Hash])
		}
	}
	if got := real.Settings(); len(got) != len(m.settings) || len(got) > 0 && !reflect.DeepEqual(got, m.settings) {
		return fmt.Errorf("settings %v, not %v", got, m.settings)
	}
	var units uint64
	var workers int
	for _, q := range m.queues {
		units += q.Units
		workers += len(q.workers)
	}
	sum := real.Summary()
	if sum.Units != units || sum.Workers != workers {
		return fmt.Errorf("%+v, but %d units, %d workers", sum, units, workers)
	}
	if sum.Now != m.now || sum.Removed != len(m.removed) || sum.Cluster != m.cluster || sum.Jobs != len(m.jobs) {
		return fmt.Errorf("%+v, but %d, %d removed, %d jobs", sum, m.now, len(m.removed), len(m.jobs))
	}
	return errors.Join(m.differDatasets(real), m.differQueues(real))
}

func (m *model) differDatasets(real *state.Machine) error {
	datasets := real.Datasets()
	if len(datasets) != len(m.datasets) {
		return fmt.Errorf("%d datasets, not %d", len(datasets), len(m.datasets))
	}
	for _, d := range datasets {
		if !reflect.DeepEqual(d, m.datasets[d.Name]) {
			return fmt.Errorf("dataset %+v, not %+v", d, m.datasets[d.Name])
		}
		for _, ranks := range []uint64{2, 4} {
			job := m.jobs[jobName(d.Name, ranks)]
			claims := real.Claims(d.Name, ranks)
			if (job != nil) != (claims != nil) {
				return fmt.Errorf("claims %v, not %v", claims, job)
			}
			for rank, node := range claims.Nodes() {
				if node != job[uint64(rank)][0] {
					return fmt.Errorf("claims %v, not %v", claims, job)
				}
			}
		}
	}
	if n := real.Summary().Plans; n != len(m.plans) {
		return fmt.Errorf("%d plans, not %d", n, len(m.plans))
	}
	for v, want := range m.plans {
		if p, ok := real.Plan(v); !ok || !reflect.DeepEqual(p, want) {
			return fmt.Errorf("plan %+v, not %+v", p, want)
		}
	}
	return nil
}

func (m *model) differQueues(real *state.Machine) error {
	queues := real.Queues()
	if len(queues) != len(m.queues) {
		return fmt.Errorf("%d queues, not %d", len(queues), len(m.queues))
	}
	for _, info := range queues {
		q := m.queues[info.View]
		got, ok := real.QueueState(info.View)
		if !ok || got.Queue != info || info != *q.info() {
			return fmt.Errorf("queue %+v, not %+v", info, q.info())
		}
		if len(got.Workers) != len(q.workers) {
			return fmt.Errorf("workers %+v", got.Workers)
		}
		for _, w := range got.Workers {
			if w != q.workers[w.ID].Worker {
				return fmt.Errorf("worker %+v, not %+v", w, q.workers[w.ID].Worker)
			}
		}
		if len(got.Suspects) != len(q.returns) {
			return fmt.Errorf("suspects %+v, not %+v", got.Suspects, q.returns)
		}
		for _, s := range got.Suspects {
			if !reflect.DeepEqual(s.By, q.returns[s.Unit]) {
				return fmt.Errorf("suspects %+v, not %+v", got.Suspects, q.returns)
			}
		}
		for unit := range int64(info.Units) {
			want := state.Undone
			switch {
			case q.finisher[unit] != "":
				want = state.Done
			case len(q.returns[unit]) == 4:
				want = state.SetAside
			}
			if got := real.Fate(info.View, unit); got != want {
				return fmt.Errorf("unit %d of %s: %v, not %v", unit, info.View, got, want)
			}
			if isDone(got.Done, unit) != (q.finisher[unit] != "") {
				return fmt.Errorf("unit %d of %s", unit, info.View)
			}
		}
	}
	return nil
}

func isDone(bitmap []uint64, unit int64) bool { return bitmap[unit/64]&(1<<(unit%64)) != 0 }
