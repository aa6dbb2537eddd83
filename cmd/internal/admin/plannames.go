package admin

import (
	"sync"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// A planName is what a plan in the cache's keys is called: a view by its full name,
// or a dataset whose chunks it names.
type planName struct{ name, kind string }

// Titles are those of the views that were planned since the mount. A view that
// is settled, or whose dataset is refreshed, has another plan by the same title.
type planNames struct {
	mu struct {
		sync.Mutex
		of    map[[16]byte]planName
		order [][16]byte // the first noted first
	}
}

// maxPlanNames is far more than the views that are known at once.
const maxPlanNames = 4096

func (t *planNames) note(plan [16]byte, as planName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.of == nil {
		t.mu.of = make(map[[16]byte]planName)
	}
	if _, known := t.mu.of[plan]; !known {
		if len(t.mu.order) == maxPlanNames {
			delete(t.mu.of, t.mu.order[0])
			t.mu.order = t.mu.order[1:]
		}
		t.mu.order = append(t.mu.order, plan)
	}
	t.mu.of[plan] = as
}

// find is the planName of a plan; none if it is not known.
func (t *planNames) find(plan [16]byte) planName {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.of[plan]
}

// plans are all that are known of a dataset.
func (t *planNames) plans(dataset string) (plans [][16]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, as := range t.mu.of {
		if name, _, _ := meta.SplitView(as.name); name == dataset {
			plans = append(plans, id)
		}
	}
	return plans
}

// has reports whether a view has a title.
func (t *planNames) has(as planName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.mu.of {
		if other == as {
			return true
		}
	}
	return false
}

// keptOf are the plans that name what the cache keeps of batches, and what that is.
func keptOf(b *views.Batches) (plans [][16]byte, kind string) {
	plans, chunks := b.Kept()
	if chunks {
		return plans, control.Chunks
	}
	return plans, control.Batches
}

// name notes what the plans of a view are called.
func (n *kept) name(b *views.Batches) {
	n.names.note(b.ID(), planName{b.View().String(), control.Batches})
	if plans, kind := keptOf(b); kind == control.Chunks {
		n.names.note(plans[0], planName{b.View().Dataset, kind})
	}
}

// short is the shortest name of what has a title.
func (n *kept) short(t planName) string {
	if t.kind == control.Batches {
		return n.Views.Called(t.name)
	}
	return t.name
}
