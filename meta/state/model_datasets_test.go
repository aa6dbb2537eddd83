package state_test

import (
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
)

func (m *model) put(c *state.PutDataset) (state.Result, error) {
	old, ok := m.datasets[c.Name]
	same := old.Index == c.Index && old.IndexBytes == c.IndexBytes && string(old.Registration) == string(c.Registration)
	if ok && same && slices.Contains([]uint64{0, old.Generation, old.Before}, c.Generation) {
		return resultOf("Generation", old.Generation), nil
	}
	if ok && c.Generation == 0 {
		return state.Result{}, meta.ErrExist
	}
	if old.Generation != c.Generation {
		return state.Result{}, meta.ErrStale
	}
	m.latest++
	m.datasets[c.Name] = state.Dataset{
		Name: c.Name, Registration: c.Registration, Index: c.Index, IndexBytes: c.IndexBytes,
		Generation: m.latest, Before: old.Generation, Registered: m.now,
	}
	m.forget(c.Name)
	return resultOf("Generation", m.latest), nil
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
	if before := j[c.Rank][1]; before != "" {
		return resultOf("Before", before), nil
	}
	return state.Result{}, nil
}

func (m *model) settle(c *state.Settle) (state.Result, error) {
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
		p = state.SettledPlan{
			View: c.View, Generation: c.Generation, Index: m.datasets[name].Index,
			Nodes: c.Nodes, Sequence: m.next(), Settled: m.now,
		}
		m.plans[c.View] = p
	}
	return resultOf("Plan", &p), nil
}
