package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"rankfs/cache"
	"rankfs/cache/policy"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// kept reports and changes what the cache keeps.
type kept struct {
	*daemon
	ctx     context.Context // of warm-ups in the background
	tasks   sync.WaitGroup
	pins    *cachePins // set by Start, as is ctx
	names   planNames
	warmUps warmUps
}

// Policy is the policy by which the cache keeps slabs, after a change if r names
// another.
func (n *kept) Policy(r control.PolicyRequest) (control.Policy, error) {
	if was := n.cache.Policy(); r.Name != "" && r.Name != was {
		if err := n.cache.SetPolicy(r.Name); err != nil {
			return control.Policy{}, err
		}
		n.Log.Info("cache policy changed", "policy", r.Name, "was", was)
	}
	return control.Policy{Name: n.cache.Policy(), Names: policy.Names()}, nil
}

// PinCache pins a view at a tier of the cache, or unpins it.
func (n *kept) PinCache(r control.CachePinRequest) (control.CachePin, error) {
	if r.Tier == "" {
		return n.unpin(r.View)
	}
	at, err := parseTier(r.Tier)
	if err != nil {
		return control.CachePin{}, err
	}
	if at == policy.Disk && !n.HasNVMe {
		return control.CachePin{}, fmt.Errorf("pin %s at nvme %w: there is no disk for batches; mount with --nvme DIR:SIZE", r.View, meta.ErrInvalid)
	}
	v, err := n.Views.Open(r.View)
	if err != nil {
		return control.CachePin{}, err
	}
	p := v.Batches()
	plans, kind := keptOf(p)
	was, err := n.pins.set(v.Key(), at, plans)
	return control.CachePin{
		View: v.Short(), Tier: r.Tier, Kind: kind, Was: tierNames[was],
		Once: kind == control.Batches && v.Asked().Order.Kind != meta.OrderNone,
	}, err
}

// unpin ends a pin, even of a dataset that does not exist any more.
func (n *kept) unpin(name string) (control.CachePin, error) {
	full := name
	v, d, err := n.Views.Resolve(name)
	if err == nil {
		full, name = v.String(), views.Shortest(v, d.Default)
	}
	if n.pins.find(full) == nil {
		return control.CachePin{}, cmp.Or(err, fmt.Errorf("pin of %s %w", name, meta.ErrNotExist))
	}
	was, err := n.pins.set(full, policy.Source, nil)
	return control.CachePin{View: name, Kind: control.Batches, Was: tierNames[was]}, err
}

// RestorePins opens each pinned view, so that the cache knows which plans name its
// batches and drops none of them before a reader opens one.
func (n *kept) RestorePins(ctx context.Context) {
	for _, view := range n.pins.names() {
		if ctx.Err() != nil {
			return
		}
		if _, err := n.Views.Open(view); err != nil {
			n.Log.Warn("a pinned view cannot be opened", "view", view, "cause", err)
		}
	}
}

// Cached lists how much of each view is cached, and which views are pinned.
func (n *kept) Cached() control.CacheList {
	n.nameDefaults()
	rows := make(map[planName]*control.Cached)
	row := func(t planName) *control.Cached {
		if rows[t] == nil {
			rows[t] = &control.Cached{View: n.short(t), Kind: cmp.Or(t.kind, control.Batches)}
		}
		return rows[t]
	}
	for plan, h := range n.cache.Holdings() {
		add(row(n.names.find(plan)), h)
	}
	for _, view := range n.pins.names() {
		if s := n.pins.find(view); s != nil {
			r := row(n.nameOf(view, s))
			if was, err := parseTier(r.Pinned); err != nil || was < s.at {
				r.Pinned = tierNames[s.at]
			}
		}
	}
	list := control.CacheList{Policy: n.cache.Policy(), Views: []control.Cached{}, Warming: n.warmUps.list()}
	for _, r := range rows {
		list.Views = append(list.Views, *r)
	}
	slices.SortFunc(list.Views, func(a, b control.Cached) int {
		return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Kind, b.Kind))
	})
	if v := list.Views; len(v) > 0 && v[0].View == "" { // what has no name comes last
		list.Views = append(v[1:], v[0])
	}
	return list
}

func add(r *control.Cached, h cache.Holding) {
	for at, to := range map[policy.Level]*control.Held{policy.RAM: &r.RAM, policy.Packed: &r.Packed, policy.Disk: &r.NVMe} {
		to.Batches += h.Batches[at]
		to.Bytes += h.Bytes[at]
	}
}

// nameDefaults sees to it that each dataset's own view has a name: what earlier
// daemons left on disks may be of it.
func (n *kept) nameDefaults() {
	for _, d := range n.Catalog.List() {
		if !n.names.has(planName{d.Default.String(), control.Batches}) {
			n.Views.Open(d.Name) // what cannot be opened has none
		}
	}
}

// nameOf is the name of a pinned view.
func (n *kept) nameOf(view string, s *cachePin) planName {
	for _, plan := range s.plans {
		if t := n.names.find(plan); t.name != "" {
			return t
		}
	}
	return planName{view, control.Batches}
}

// Evict drops what is cached of a view, or of all views of a dataset.
func (n *kept) Evict(ctx context.Context, name string) (control.Eviction, error) {
	v, err := n.Views.Open(name)
	if err != nil {
		return control.Eviction{}, err
	}
	p := v.Batches()
	plans, kind := keptOf(p)
	plans = append(plans, p.ID())
	_, _, isView := meta.SplitView(name)
	if !isView {
		plans = append(plans, n.names.plans(name)...)
	}
	n.warmUps.cancel(ctx, func(w *warmUp) bool {
		return w.view.Key() == v.Key() || !isView && w.view.Asked().Dataset == name
	}, errEvicted)
	e := control.Eviction{View: name, Kind: kind}
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
func (n *kept) evict(plan [16]byte, e *control.Eviction) {
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
