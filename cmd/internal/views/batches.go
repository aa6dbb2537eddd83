package views

import (
	"fmt"
	"sync"

	"rankfs/cache"
	"rankfs/fetch/batch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// Batches are the batches of a view as the cache knows them. They are a cache.Plan.
type Batches struct {
	*batch.Batches
	slabs     *chunkSlabs     // of Chunks
	following func() *Batches // of the next epoch
}

// Dataset names what all views of a dataset are made of.
func (b *Batches) Dataset() string { return b.Version.Index.Fingerprint() }

// Key names the content of a batch.
func (b *Batches) Key(rank, step uint64) cache.Key { return cache.Key(b.Batch(rank, step)) }

// Find is the inverse of Key.
func (b *Batches) Find(k cache.Key) (rank, step uint64, ok bool) {
	return b.Plan.Find(plan.BatchID(k))
}

// Next is the plan of the epoch to come: the ranks will be where they are.
func (b *Batches) Next() cache.Plan {
	if next := b.following(); next != nil {
		return next
	}
	return nil
}

// Once reports whether other epochs have other batches, or it is the chunks they are
// made of that are kept.
func (b *Batches) Once() bool {
	if b.View().Step.Unit == meta.UnitChunk {
		return false
	}
	return b.View().Order.Kind != meta.OrderNone || b.Chunks != nil
}

// Shared is false: no fill copies from batches.
func (b *Batches) Shared() bool { return false }

// Ahead is true: a batch may be made ready before it is opened.
func (b *Batches) Ahead(_, _ uint64) bool { return true }

// Kept are the plans that name, in the cache's keys, what it keeps of b: the batches,
// or the chunks that these are or are made of.
func (b *Batches) Kept() (plans [][16]byte, chunks bool) {
	switch {
	case b.Chunks != nil:
		return [][16]byte{b.slabs.ID()}, true
	case b.View().Step.Unit == meta.UnitChunk:
		return [][16]byte{b.ChunksID(), b.ID()}, true
	}
	return [][16]byte{b.ID()}, false
}

// ChunkPlan is, as the cache knows it, the plan of the chunks that the batches are made
// of; only if there are such.
func (b *Batches) ChunkPlan() cache.Plan { return b.slabs }

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
	case v.Step.Unit == meta.UnitChunk:
		b.Keepers = vs.keepers(v, of)
	case staysCached(v, of.Index, vs.roomOfAll()):
		b.slabs = newChunkSlabs(vs.cache, of, b.Plan)
		b.Chunks = b.slabs.chunks
		b.Roomy = staysCached(v, of.Index, vs.room())
	}
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

// room is how much this node's cache can be trusted to keep beside the batches in use,
// roomOfAll how much those of the cluster can, if all are like it.
func (vs *Views) room() int64 {
	room := vs.config.RAM / 4 * 3
	for _, d := range vs.cache.Stats().NVMe {
		room += d.Budget - d.Others
	}
	return room
}

func (vs *Views) roomOfAll() int64 { return vs.room() * int64(vs.config.Owners.Count()) }

// staysCached reports whether chunks stay in a cache of that capacity from one use to
// the next. If not, fetching them whole would fetch them again and again, and records
// are better asked for one by one.
func staysCached(v meta.View, x *index.Index, capacity int64) bool {
	chunk := meanChunk(x)
	between := x.Bytes() // that are read until a chunk's records have all had their turn
	switch v.Order.Kind {
	case meta.OrderNone:
		between = 0
	case meta.OrderWindow:
		if run := windowRun(v.Order.Window, x); run >= chunk && v.Order.Window < x.Records() {
			between = min(between, inWindows*(run+chunk))
		}
	}
	return between+2*chunk <= capacity
}

// A window is of 16 runs of the source, in any order. What is made ready ahead is of
// the next window while some of one is still to be read, and a run can reach past a
// window's end. A run begins and ends within chunks; those come back in other windows,
// and all do where runs are shorter than they are.
const (
	runsPerWindow = 16
	inWindows     = 2*runsPerWindow + 1
)

// windowRun is the bytes of one run in a window of that many records.
func windowRun(window uint64, x *index.Index) int64 {
	return int64(float64(window/runsPerWindow) * float64(x.Bytes()) / float64(max(1, x.Records())))
}

func meanChunk(x *index.Index) int64 { return x.Bytes() / int64(max(1, x.Chunks())) }
