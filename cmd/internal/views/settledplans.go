package views

import (
	"context"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
)

// settledPlans are the plans that the cluster settled and views of this node go by. The
// lock guards the table, and is taken before that of the state machine.
type settledPlans struct {
	state *state.Machine
	drop  func(dataset string) // has its names looked up again

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

// follow has names looked up again whose plans were unsettled, until ctx is done.
func (p *settledPlans) follow(ctx context.Context) {
	for {
		changed := p.state.ClusterChanged()
		for _, dataset := range p.overtaken() {
			p.drop(dataset)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// overtaken are the datasets with views whose plan was unsettled or replaced by another.
// It forgets these plans, and those that the cluster dropped for room.
func (p *settledPlans) overtaken() (datasets []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for view, sequence := range p.mu.sequence {
		if plan, ok := p.state.SettledPlan(view); ok && plan.Sequence == sequence {
			continue
		}
		delete(p.mu.sequence, view)
		if p.state.Overtaken(view, sequence) {
			dataset, _, _ := meta.SplitView(view)
			datasets = append(datasets, dataset)
		}
	}
	return datasets
}
