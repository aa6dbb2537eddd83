package node

import (
	"sync"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// A title is what a plan in the cache's keys is called: a view by its full name,
// or a dataset whose chunks it names.
type title struct{ name, kind string }

// Titles are those of the views that were planned since the mount. A view that
// is settled, or whose dataset is refreshed, has another plan by the same title.
type titles struct {
	mu struct {
		sync.Mutex
		of    map[[16]byte]title
		order [][16]byte // the first noted first
	}
}

// mostTitles is far more than the views that are known at once.
const mostTitles = 4096

func (t *titles) note(plan [16]byte, as title) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.of == nil {
		t.mu.of = make(map[[16]byte]title)
	}
	if _, known := t.mu.of[plan]; !known {
		if len(t.mu.order) == mostTitles {
			delete(t.mu.of, t.mu.order[0])
			t.mu.order = t.mu.order[1:]
		}
		t.mu.order = append(t.mu.order, plan)
	}
	t.mu.of[plan] = as
}

// find is the title of a plan; none if it is not known.
func (t *titles) find(plan [16]byte) title {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.of[plan]
}

// plans are all that are known of a dataset.
func (t *titles) plans(dataset string) (plans [][16]byte) {
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
func (t *titles) has(as title) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.mu.of {
		if other == as {
			return true
		}
	}
	return false
}

// entitle notes what the plans of a view are called.
func (n *Node) entitle(p *batches) {
	n.titles.note(p.ID(), title{p.View().String(), control.Batches})
	if plans, kind := p.kept(); kind == control.Chunks {
		n.titles.note(plans[0], title{p.View().Dataset, kind})
	}
}

// short is the shortest name of what has a title.
func (n *Node) short(t title) string {
	if t.kind == control.Batches {
		return n.called(t.name)
	}
	return t.name
}
