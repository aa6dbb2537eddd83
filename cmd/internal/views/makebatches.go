package views

import (
	"fmt"
	"sync"

	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/order"
	"rankfs/shuffle/plan"
)

// newBatches makes the batches of a view whose ranks have these seats, out of chunks
// where that saves fetching.
func (vs *Views) newBatches(v meta.View, of *batch.Version, seats []plan.Seat) (*Batches, error) {
	b := &Batches{Batches: &batch.Batches{
		Plan: plan.New(v, of.Plans), Version: of, Sizes: vs.config.Sizes, Peers: vs.config.Peers,
	}}
	b.following = sync.OnceValue(func() *Batches { return vs.following(b, seats) })
	if err := b.Place(seats); err != nil {
		return nil, fmt.Errorf("plan of %v: %w", v, err)
	}
	switch {
	case !of.Source.Remote:
	case v.ByChunk():
		b.EarlierReaders = vs.earlierReaders(v, of)
	case staysCached(v, of.Index, vs.roomOfAll()):
		b.slabs = newChunkSlabs(of, b.Plan)
		b.Chunks = b.slabs.chunks
		b.Roomy = staysCached(v, of.Index, vs.room())
	}
	b.series = seriesOf(b)
	vs.watcher.Planned(b)
	return b, nil
}

// following is the plan of the epoch after that of b, of which no rank has opened a
// batch yet; nil if there is none.
func (vs *Views) following(b *Batches, seats []plan.Seat) *Batches {
	v := b.View()
	if v.Order.Kind == meta.OrderNone {
		return b
	}
	if v.Epoch++; v.Epoch == 0 {
		return nil
	}
	next, err := vs.newBatches(v, b.Version, seats)
	if err != nil {
		vs.config.Log.Debug("next epoch not planned ahead", "view", v, "cause", err)
		return nil
	}
	return next
}

// room is the part of this node's cache that can be trusted to keep chunks beside the batches in use,
// roomOfAll how much those of the cluster can, if all are like it.
func (vs *Views) room() int64 {
	disk := int64(0)
	for _, d := range vs.cache.Stats().NVMe {
		disk += d.Budget - d.Others
	}
	return order.Room(vs.config.RAM, disk)
}

func (vs *Views) roomOfAll() int64 { return vs.room() * int64(vs.config.Owners.Count()) }

// staysCached reports whether the chunks of an index stay in caches of that capacity.
func staysCached(v meta.View, x *index.Index, capacity int64) bool {
	return order.Stays(v.Order, order.Source{Records: x.Records(), Chunks: uint64(x.Chunks()), Bytes: x.Bytes()}, capacity)
}
