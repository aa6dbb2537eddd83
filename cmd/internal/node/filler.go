package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/dgraph-io/ristretto/v2"

	"rankfs/cache"
	"rankfs/cache/peers"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A filler fetches the records of a plan's batches. It is the cache's cache.Plan.
type filler struct {
	*plan.Plan
	content *content
	sizes   *sizes
	parts   *parts // of what the batches are made, if not straight from the source
	roomy   bool   // this node's cache alone has room for the parts
	shared  bool   // the plan of those parts

	following func() *filler // of the next epoch

	readers *readers // of parts
	peers   *peers.Client
	formers func() []former // of which nodes may have chunks
}

func newFiller(p *plan.Plan, c *content, s *sizes) *filler {
	return &filler{
		Plan: p, content: c, sizes: s,
		following: func() *filler { return nil }, formers: func() []former { return nil },
	}
}

// Dataset names what all views of a dataset are made of.
func (p *filler) Dataset() string { return p.content.index.Fingerprint() }

// Key names the content of a batch.
func (p *filler) Key(rank, step uint64) cache.Key { return cache.Key(p.Batch(rank, step)) }

// Find is the inverse of Key.
func (p *filler) Find(k cache.Key) (rank, step uint64, ok bool) { return p.Plan.Find(plan.BatchID(k)) }

// Next is the plan of the epoch to come: the ranks will be where they are.
func (p *filler) Next() cache.Plan {
	if next := p.following(); next != nil {
		return next
	}
	return nil
}

// Once reports whether other epochs have other batches, or it is the parts they
// are made of that are kept.
func (p *filler) Once() bool {
	if p.View().Step.Unit == meta.UnitChunk {
		return false
	}
	return p.View().Order.Kind != meta.OrderNone || p.parts != nil
}

// Shared reports whether the batches are parts of other plans' batches.
func (p *filler) Shared() bool { return p.shared }

// Ahead reports whether a batch may be made ready before somebody asks: not a
// part whose owner is another node, or may be.
func (p *filler) Ahead(_, step uint64) bool {
	if !p.shared {
		return true
	}
	return p.readers != nil && p.owner(int(step)) == p.content.owners.Self
}

// owner is the node that fetches a chunk: where it is read most, if that is up.
func (p *filler) owner(chunk int) string {
	c := p.content
	if p.readers != nil && p.readers.of != nil {
		if host, ok := p.readers.of.OwnerHost(chunk); ok {
			if id, ok := c.owners.At(host); ok {
				return id
			}
		}
	}
	return c.owners.Of(p.seed(), chunk, c.hosts(chunk))
}

// seed makes the owners of datasets' chunks independent of one another.
func (p *filler) seed() uint64 { return plan.Seed(p.content.id) }

// recordsAtOnce is how many records are dealt with at a time: enough that what is
// done once for them is nothing, few enough that a fill that nobody wants any more
// ends soon.
const recordsAtOnce = 4096

// A recordBatch is the room for so many, used again and again.
type recordBatch struct {
	records []uint64
	extents []index.Extent
	pieces  []piece
}

var recordBatches = sync.Pool{New: func() any { return &recordBatch{records: make([]uint64, 0, recordsAtOnce)} }}

// each calls f with the records of a batch in order, some at a time, until one
// fails.
func (p *filler) each(rank, step uint64, f func(b *recordBatch) error) error {
	return p.eachFrom(rank, step, 0, f)
}

// eachFrom is each without the first records.
func (p *filler) eachFrom(rank, step, skip uint64, f func(b *recordBatch) error) error {
	b := recordBatches.Get().(*recordBatch)
	defer recordBatches.Put(b)
	return p.Each(rank, step, skip, b.records[:0], func(records []uint64) error {
		b.records = records
		return f(b)
	})
}

// Size is the number of bytes in a batch.
func (p *filler) Size(rank, step uint64) int64 {
	size, err := p.SizeFor(context.Background(), rank, step)
	if err != nil {
		return 0 // as for every batch: opening one says why
	}
	return size
}

// SizeFor is Size for somebody who may lose patience: records of different lengths
// are added up.
func (p *filler) SizeFor(ctx context.Context, rank, step uint64) (int64, error) {
	if length, ok := p.content.index.Uniform(); ok {
		return length * int64(p.Records(rank, step)), nil
	}
	return p.sizes.get(p, rank, step, func() (int64, error) {
		if p.Records(rank, step) <= recordsAtOnce {
			m := p.newMarks(rank, step)
			err := m.walk(ctx, 0, 0)
			return m.mu.before[len(m.mu.before)-1], err
		}
		m, done := p.sizes.marks(p, rank, step)
		defer done()
		return m.reckon(ctx, p.sizes.walks)
	})
}

// sizes remembers batch sizes, which a listing asks for and a fill again: with
// a shuffled order each is a walk through the index.
type sizes struct {
	cache *ristretto.Cache[string, int64]
	*allMarks
}

func newSizes() (*sizes, error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, int64]{
		NumCounters:        1 << 19, // ten times the entries
		MaxCost:            1 << 16, // entries: some 6 MiB
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("size cache: %w", err)
	}
	return &sizes{c, newAllMarks()}, nil
}

func (s *sizes) get(p *filler, rank, step uint64, compute func() (int64, error)) (int64, error) {
	var key [32]byte
	id := p.ID()
	copy(key[:], id[:])
	binary.LittleEndian.PutUint64(key[16:], rank)
	binary.LittleEndian.PutUint64(key[24:], step)
	k := string(key[:])
	size, ok := s.cache.Get(k)
	if ok {
		return size, nil
	}
	size, err := compute()
	if err == nil {
		s.cache.Set(k, size, 1) // it may refuse: then it is computed again
	}
	return size, err
}

func (s *sizes) close() { s.cache.Close() }
