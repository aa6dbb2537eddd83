package state_test

import (
	"errors"
	"fmt"
	"reflect"

	"rankfs/meta/state"
)

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
	var readers int
	for _, q := range m.queues {
		units += q.Units
		readers += len(q.readers)
	}
	sum := real.Sizes()
	if sum.Units != units || sum.Readers != readers {
		return fmt.Errorf("%+v, but %d units, %d readers", sum, units, readers)
	}
	if sum.Now != m.now || sum.Removed != len(m.removed) || sum.Cluster != m.cluster || sum.RankCounts != len(m.jobs) {
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
	if n := real.Sizes().Plans; n != len(m.plans) {
		return fmt.Errorf("%d plans, not %d", n, len(m.plans))
	}
	for v, want := range m.plans {
		if p, ok := real.SettledPlan(v); !ok || !reflect.DeepEqual(p, want) {
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
		if len(got.Readers) != len(q.readers) {
			return fmt.Errorf("readers %+v", got.Readers)
		}
		for _, w := range got.Readers {
			if w != q.readers[w.ID].Reader {
				return fmt.Errorf("reader %+v, not %+v", w, q.readers[w.ID].Reader)
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
