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
	all, kind := cachedAs(p)
	all = append(all, p.ID())
	_, _, isView := meta.SplitView(name)
	if !isView {
		all = append(all, n.names.of(name)...)
	}
	n.warmUps.cancel(ctx, func(w *warmUp) bool {
		return w.view.Key() == v.Key() || !isView && w.view.Asked().Dataset == name
	}, errEvicted)
	e := control.Eviction{ViewName: control.NameOf(v.Called()), AllViews: !isView, Kind: kind}
	seen := make(map[[16]byte]bool)
	for _, series := range all {
		if !seen[series] && ctx.Err() == nil {
			n.evict(series, &e)
		}
		seen[series] = true
	}
	n.Log.Info("evicted", "view", name, "batches", e.Evicted.Batches, "bytes", e.Evicted.Bytes, "held", e.Stayed.Batches)
	return e, ctx.Err()
}

// evict drops the slabs of a series and adds them to e.
func (n *slabs) evict(series [16]byte, e *control.Eviction) {
	before := n.cache.Holdings()[series].Total()
	gone, held := n.cache.DiscardAll(series)
	after := n.cache.Holdings()[series].Total()
	e.Evicted.Batches += gone
	e.Evicted.Bytes += max(0, before-after)
	e.Stayed.Batches += held
	if held > 0 {
		e.Stayed.Bytes += after
	}
}

// errEvicted is the end of a warm-up of what was evicted.
var errEvicted = errors.New("it was evicted meanwhile")
