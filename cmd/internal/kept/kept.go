package kept

import (
	"context"
	"errors"
	"time"

	"rankfs/cache"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// Kept has the slabs of views that the cache keeps, and the traces. It implements
// views.Watcher, and is part of a control.Node.
type Kept struct {
	*slabs
	*traces
}

var _ views.Watcher = (*Kept)(nil)

// New makes the parts of a Kept that need no cache; Start gives it one.
func New(c Config) *Kept {
	n := &shared{Config: c}
	return &Kept{&slabs{shared: n}, &traces{shared: n}}
}

// Start takes the cache, and reads the pins and traces of an earlier daemon. Until ctx is
// done warm-ups may go on in the background.
func (k *Kept) Start(ctx context.Context, c *cache.Cache, m Memory) (err error) {
	n := k.slabs.shared
	n.cache, n.memory, k.ctx = c, m, ctx
	if k.pins, err = openCachePins(n.Dir, c.Pin); err != nil {
		return err
	}
	if err := errors.Join(k.learnt.open(n.Dir), n.registered.open(n.Dir)); err != nil {
		return err
	}
	for _, d := range n.Catalog.List() {
		k.Registered(d.Name, d.Created)
	}
	return nil
}

// Registered is called when a name stands for another dataset than before, which was
// registered then, or for none. It forgets what is kept for any other of that name: whether
// a pin or a trace is of use to this one is not known. What an earlier release kept,
// which did not say for which dataset, is for the one that is met first.
func (k *Kept) Registered(dataset string, at time.Time) {
	was, known := k.slabs.registered.find(dataset)
	var err error
	switch {
	case known && was.Equal(at) && !at.IsZero():
		return
	case !known && !at.IsZero():
		if k.keeps(dataset) {
			err = k.slabs.registered.set(dataset, at)
		}
	default:
		if k.keeps(dataset) {
			k.slabs.Log.Info("what was kept for a dataset that was removed is forgotten", "dataset", dataset)
		}
		err = errors.Join(k.pins.forget(dataset), k.forget(dataset), k.slabs.registered.set(dataset, time.Time{}))
	}
	if err != nil {
		k.slabs.Log.Warn("what is kept for a dataset may be that of another of its name", "dataset", dataset, "cause", err)
	}
}

// keeps reports whether anything is kept for a dataset.
func (k *Kept) keeps(dataset string) bool {
	_, learnt := k.learnt.find(dataset)
	return learnt || k.pins.has(dataset)
}

// Wait waits for what goes on in the background, which ends soon after the context of
// Start.
func (k *Kept) Wait() { k.tasks.Wait() }

// Planned implements views.Watcher: it notes the name of a view's series, and gives the
// cache the trace that is kept for its dataset.
func (k *Kept) Planned(b *views.Batches) {
	k.name(b)
	if _, ok := k.learnt.find(b.View().Dataset); ok {
		k.tellCache()
	}
}

// Found implements views.Watcher: it pins what the cache keeps of a pinned view.
func (k *Kept) Found(v meta.View, b *views.Batches) {
	series, _ := b.CachedAs()
	k.pins.meet(v.String(), series)
}

// Lost is why traces were lost, if any were, and pins.
func (k *Kept) Lost() (traces []string, pins error) { return k.learnt.warnings(), k.pins.warning() }

// Opened lists the batches that the latest readers opened.
func (k *Kept) Opened() []byte {
	return tracesText(k.slabs.cache.Traces(), func(series [16]byte) string { return k.slabs.named(series).name })
}

// Workers is the number of fills that the cache does at a time.
func (k *Kept) Workers() int { return k.slabs.cache.Workers() }

// Stats are the tiers of the cache, the fastest first, and its counters.
func (k *Kept) Stats() ([]control.Tier, control.Counters) {
	c := k.slabs.cache.Stats()
	return k.tiers(c), control.Counters{
		CacheCounts: c.CacheCounts, FillSeconds: c.FillTime.Seconds(), ChoiceSeconds: c.ChoiceTime.Seconds(), Recycled: c.Recycled,
		FillCost: control.Cost{Latency: c.FillCost.Latency.Seconds(), Rate: c.FillCost.Rate, Bytes: c.FillCost.Bytes},
	}
}
