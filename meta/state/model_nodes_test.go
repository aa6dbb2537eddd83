package state_test

import (
	"rankfs/meta"
	"rankfs/meta/state"
)

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
		return resultOf("Node", &n), nil
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
	return resultOf("Node", &n), nil
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
	ofIt := func(w *modelReader) bool { return w.Node == c.ID }
	m.giveBack(state.Removal, ofIt)
	for _, q := range m.queues {
		for _, w := range q.readers {
			w.Left = w.Left || ofIt(w)
		}
	}
	return nil
}
