package kept

import (
	"context"
	"errors"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// Evict drops what is cached of a view, or of all views of a dataset.
func (n *slabs) Evict(ctx context.Context, name string) (control.Eviction, error) {
	v, err := n.Views.Open(name)
	if err != nil {
		return control.Eviction{}, err
	}
	p := v.Batches()
	plans, kind := cachedAs(p)
	plans = append(plans, p.ID())
	_, _, isView := meta.SplitView(name)
	if !isView {
		plans = append(plans, n.names.plans(name)...)
	}
	n.warmUps.cancel(ctx, func(w *warmUp) bool {
		return w.view.Key() == v.Key() || !isView && w.view.Asked().Dataset == name
	}, errEvicted)
	e := control.Eviction{ViewName: control.NameOf(v.Called()), Kind: kind}
	if !isView {
		e.ViewName = control.NameOf(name, name)
	}
	seen := make(map[[16]byte]bool)
	for _, plan := range plans {
		if !seen[plan] && ctx.Err() == nil {
			n.evict(plan, &e)
		}
		seen[plan] = true
	}
	n.Log.Info("evicted", "view", name, "batches", e.Evicted.Batches, "bytes", e.Evicted.Bytes, "held", e.Stayed.Batches)
	return e, ctx.Err()
}

// evict drops the slabs of a plan and adds them to e.
func (n *slabs) evict(plan [16]byte, e *control.Eviction) {
	before := n.cache.Holdings()[plan].Total()
	gone, held := n.cache.DiscardAll(plan)
	after := n.cache.Holdings()[plan].Total()
	e.Evicted.Batches += gone
	e.Evicted.Bytes += max(0, before-after)
	e.Stayed.Batches += held
	if held > 0 {
		e.Stayed.Bytes += after
	}
}

// errEvicted is the end of a warm-up of what was evicted.
var errEvicted = errors.New("it was evicted meanwhile")
