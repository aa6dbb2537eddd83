package kept

import (
	"sync"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// A planName is what a plan in the cache's keys is called: a view by its full name,
// or a dataset whose chunks it names.
type planName struct{ name, kind string }

// planNames are the names of the plans that were made since the mount. A view that is
// settled, or whose dataset is refreshed, has another plan by the same name. The lock
// guards both fields, which have the same plans.
type planNames struct {
	mu struct {
		sync.Mutex
		of    map[[16]byte]planName
		order [][16]byte // the first noted first
	}
}

// maxPlanNames is far more than the views that are known at once.
const maxPlanNames = 4096

func (n *planNames) note(plan [16]byte, as planName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.of == nil {
		n.mu.of = make(map[[16]byte]planName)
	}
	if _, known := n.mu.of[plan]; !known {
		if len(n.mu.order) == maxPlanNames {
			delete(n.mu.of, n.mu.order[0])
			n.mu.order = n.mu.order[1:]
		}
		n.mu.order = append(n.mu.order, plan)
	}
	n.mu.of[plan] = as
}

// find is the name of a plan; none if it is not known.
func (n *planNames) find(plan [16]byte) planName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.of[plan]
}

// plans are all that are known of a dataset.
func (n *planNames) plans(dataset string) (plans [][16]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, as := range n.mu.of {
		if name, _, _ := meta.SplitView(as.name); name == dataset {
			plans = append(plans, id)
		}
	}
	return plans
}

// has reports whether a plan has a name.
func (n *planNames) has(as planName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.mu.of {
		if other == as {
			return true
		}
	}
	return false
}

// cachedAs has the plans that name the slabs of batches in the cache, and their kind.
func cachedAs(b *views.Batches) (plans [][16]byte, kind string) {
	plans, chunks := b.CachedAs()
	if chunks {
		return plans, control.Chunks
	}
	return plans, control.Batches
}
