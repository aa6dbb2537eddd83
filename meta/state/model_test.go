package state_test

import (
	"encoding/json"
	"fmt"

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
	plans    map[string]state.SettledPlan
	queues   map[string]*modelQueue
	settings map[string]string
	uses     map[string]int // of tokens, ever
}

func newModel() *model {
	return &model{
		tokens: make(map[string]state.Token), nodes: make(map[string]state.Node), removed: make(map[string]bool),
		datasets: make(map[string]state.Dataset),
		jobs:     make(map[string]map[uint64][2]string), plans: make(map[string]state.SettledPlan),
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

// resultOf is a result as a node reads it that asked the leader.
func resultOf(field string, is any) (r state.Result) {
	b, err := json.Marshal(map[string]any{field: is})
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		panic(err)
	}
	return r
}

func (m *model) apply(c state.Command, at int64) (state.Result, error) {
	m.now = max(at, 0)
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
			m.giveBack(state.Down, func(w *modelReader) bool { return w.Node == c.ID })
		}
		return state.Result{}, err
	case *state.Begin:
		again := m.nodes[c.ID].Life == c.Life
		err := m.change(c.ID, func(n *state.Node) { n.Addr, n.Life, n.Up = c.Addr, c.Life, n.Up || !again })
		if err == nil && !again {
			m.giveBack(state.Down, func(w *modelReader) bool { return w.Node == c.ID })
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
	case *state.Settle:
		return m.settle(c)
	case *state.Unsettle:
		delete(m.plans, c.View)
	case *state.OpenQueue:
		return m.open(c)
	case *state.TakeUnit:
		return m.step(c)
	case *state.LeaveQueue:
		m.leave(c)
	case *state.ResetQueue:
		return m.reset(c)
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
