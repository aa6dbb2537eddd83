package views

import (
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
)

// settledPlans are the plans that the cluster settled and views of this node go by. The
// lock guards the table, and is taken before that of the state machine.
type settledPlans struct {
	mu struct {
		sync.Mutex
		sequence map[string]uint64 // by view
	}
}

// note notes the plan, by its sequence, that a view goes by from now on.
func (p *settledPlans) note(view string, sequence uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.sequence == nil {
		p.mu.sequence = make(map[string]uint64)
	}
	p.mu.sequence[view] = sequence
}

// overtaken are the datasets with views whose plan was unsettled or replaced by another.
// It forgets these plans, and those that the cluster dropped for room.
func (p *settledPlans) overtaken(m *state.Machine) (datasets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for view, sequence := range p.mu.sequence {
		if plan, ok := m.SettledPlan(view); ok && plan.Sequence == sequence {
			continue
		}
		delete(p.mu.sequence, view)
		if m.Overtaken(view, sequence) {
			dataset, _, _ := meta.SplitView(view)
			datasets = append(datasets, dataset)
		}
	}
	return datasets
}
