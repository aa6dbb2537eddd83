package views

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/order"
	"rankfs/shuffle/plan"
)

// A Watcher is told of views. It may be called concurrently, and by a lookup, so it
// must not take long.
type Watcher interface {
	// Planned is called with the batches of each plan that is made.
	Planned(*Batches)
	// Found is called with the batches that a view has as of now.
	Found(view meta.View, b *Batches)
}

// A maker makes the batches of views, of all that a node has to make them of. It may be used
// concurrently: none of its fields changes once Start of the views has set cache and watcher.
type maker struct {
	host    string // this one
	ram     int64  // the budget of the cache's memory
	sizes   *batch.Sizes
	peers   batch.Peers
	owners  *plan.Owners
	ranks   *Ranks
	log     *slog.Logger
	cache   *cache.Cache // nil before Start, as is watcher
	watcher Watcher
}

// assign makes what follows for a view from where its ranks are.
func (m *maker) assign(v meta.View, of *batch.Version, seats []plan.Seat, settled bool) (*assignment, error) {
	b, err := m.batches(v, of, seats)
	if err != nil {
		return nil, err
	}
	if settled && b.Chunks != nil {
		of.ReadBy(b.Plan)
	}
	m.watcher.Found(v, b)
	return &assignment{b, m.host, seats, settled}, nil
}

// batches makes the batches of a view whose ranks have these seats, out of chunks where that
// saves fetching.
func (m *maker) batches(v meta.View, of *batch.Version, seats []plan.Seat) (*Batches, error) {
	b := &Batches{Batches: &batch.Batches{
		Plan: plan.New(v, of.Plans), Version: of, Sizes: m.sizes, Peers: m.peers,
	}}
	b.following = sync.OnceValue(func() *Batches { return m.following(b, seats) })
	if err := b.Place(seats); err != nil {
		return nil, fmt.Errorf("plan of %v: %w", v, err)
	}
	switch {
	case !of.Source.Remote:
	case v.ByChunk():
		b.EarlierReaders = m.earlierReaders(v, of)
	case staysCached(v, of.Index, m.roomOfAll()):
		b.slabs = newChunkSlabs(of, b.Plan)
		b.Chunks = b.slabs.chunks
		b.Roomy = staysCached(v, of.Index, m.room())
	}
	b.series = seriesOf(b)
	m.watcher.Planned(b)
	return b, nil
}

// following is the plan of the epoch after that of b, of which no rank has opened a
// batch yet; nil if there is none.
func (m *maker) following(b *Batches, seats []plan.Seat) *Batches {
	v := b.View()
	if v.Order.Kind == meta.OrderNone {
		return b
	}
	if v.Epoch++; v.Epoch == 0 {
		return nil
	}
	next, err := m.batches(v, b.Version, seats)
	if err != nil {
		m.log.Debug("next epoch not planned ahead", "view", v, "cause", err)
		return nil
	}
	return next
}

// earlierReaders says which other nodes may have a chunk of a view whose batches are chunks,
// the likeliest first. The settled plans are looked up once, for the first chunk.
func (m *maker) earlierReaders(v meta.View, of *batch.Version) func(chunk int) []string {
	earlierPlans := sync.OnceValue(func() []earlierPlan { return m.ranks.earlierPlans(v, of) })
	return func(chunk int) (nodes []string) {
		for _, f := range earlierPlans() {
			node, ok := f.reader(chunk)
			if ok && node != m.owners.Self && m.owners.Up(node) && !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
		return nodes
	}
}

// room is the part of this node's cache that can be trusted to keep chunks beside the batches in use,
// roomOfAll how much those of the cluster can, if all are like it.
func (m *maker) room() int64 {
	disk := int64(0)
	for _, d := range m.cache.Stats().NVMe {
		disk += d.Budget - d.Others
	}
	return order.Room(m.ram, disk)
}

func (m *maker) roomOfAll() int64 { return m.room() * int64(m.owners.Count()) }

// staysCached reports whether the chunks of an index stay in caches of that capacity.
func staysCached(v meta.View, x *index.Index, capacity int64) bool {
	return order.Stays(v.Order, order.Source{Records: x.Records(), Chunks: uint64(x.Chunks()), Bytes: x.Bytes()}, capacity)
}
