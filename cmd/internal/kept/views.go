package kept

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// slabs reports and changes what the cache keeps of views.
type slabs struct {
	*shared
	ctx     context.Context // of warm-ups in the background
	tasks   sync.WaitGroup
	pins    *cachePins // set by Start, as is ctx
	names   seriesNames
	warmUps warmUps
}

// Policy is the policy by which the cache keeps slabs, after a change if r names
// another.
func (n *slabs) Policy(r control.PolicyRequest) (control.Policy, error) {
	if was := n.cache.Policy(); r.Name != "" && r.Name != was {
		if err := n.cache.SetPolicy(r.Name); err != nil {
			return control.Policy{}, err
		}
		n.Log.Info("cache policy changed", "policy", r.Name, "was", was)
	}
	return control.Policy{Name: n.cache.Policy(), Names: policy.Names()}, nil
}

// PinCache pins a view at a tier of the cache, or unpins it.
func (n *slabs) PinCache(ctx context.Context, r control.CachePinRequest) (control.CachePin, error) {
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
	if err := v.Of().Changed(ctx); err != nil {
		return control.CachePin{}, fmt.Errorf("pin %s: %w", r.View, err)
	}
	if err := n.registered.set(v.Of().Name, v.Of().Created); err != nil {
		return control.CachePin{}, err
	}
	_, kind := cachedAs(v.Batches())
	was, err := n.pins.set(v.Key(), at)
	if err == nil {
		err = n.restorePin(v.Key()) // it may have been settled or refreshed meanwhile
	}
	return control.CachePin{
		ViewName: control.NameOf(v.Called()), Tier: r.Tier, Kind: kind, Was: tierNames[was], TooLarge: n.tooLarge(v),
		Once: kind == control.Batches && v.Asked().Order.Kind != meta.OrderNone,
	}, err
}

// unpin ends a pin, even of a dataset that does not exist any more.
func (n *slabs) unpin(name string) (control.CachePin, error) {
	is := control.NameOf(n.Views.Called(name))
	if _, ok := n.pins.find(is.Full); !ok {
		_, _, err := n.Views.Resolve(name)
		return control.CachePin{}, cmp.Or(err, fmt.Errorf("pin of %s %w", is.View, meta.ErrNoPin))
	}
	was, err := n.pins.set(is.Full, policy.Source)
	return control.CachePin{ViewName: is, Kind: control.Batches, Was: tierNames[was]}, err
}

// tooLarge is why there is no room at all for the largest batch of a view, or nothing.
func (n *slabs) tooLarge(v *views.View) string {
	return n.Views.Memory.TooLarge(v.Asked(), v.Of().Version)
}

// RestorePins opens each pinned view, so that the cache drops none of its batches before
// a reader opens one.
func (n *slabs) RestorePins(ctx context.Context) {
	for _, view := range n.pins.names() {
		if ctx.Err() != nil {
			return
		}
		if err := n.restorePin(view); err != nil {
			n.Log.Warn("a pinned view cannot be opened", "view", view, "cause", err)
		}
	}
}

// restorePin opens a pinned view, so that the pins meet it as it is now: before, it is not
// known which series name its batches.
func (n *slabs) restorePin(view string) error {
	_, err := n.Views.Open(view)
	return err
}

// name notes the names of a view's series.
func (n *slabs) name(b *views.Batches) {
	d, err := n.Catalog.Get(b.View().Dataset)
	if err != nil {
		return // it was removed meanwhile
	}
	n.names.note(b.ID(), notedName{seriesName{b.View().String(), control.Batches}, d.Created})
	if series, kind := cachedAs(b); kind == control.Chunks {
		n.names.note(series[0], notedName{seriesName{b.View().Dataset, kind}, d.Created})
	}
}

// named is the name of a series, none if it is not known or is that of another dataset now.
func (n *slabs) named(series [16]byte) seriesName {
	t := n.names.find(series)
	dataset, _, _ := meta.SplitView(t.name)
	if d, err := n.Catalog.Get(dataset); err == nil && !d.Created.Equal(t.registered) {
		return seriesName{}
	}
	return t.seriesName
}

// nameOfSeries is the name, in an answer, of what a series is of.
func (n *slabs) nameOfSeries(t seriesName) control.ViewName {
	if t.kind == control.Batches {
		return control.NameOf(n.Views.Called(t.name))
	}
	return control.ViewName{View: t.name, Full: t.name}
}
