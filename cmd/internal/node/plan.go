package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/dgraph-io/ristretto/v2"

	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A plan is a view of one version of a dataset: it knows which records each
// batch holds, and fetches them. It is the cache's cache.Plan.
type plan struct {
	view    meta.View
	cut     meta.Cut
	order   order.Order
	content *content
	id      [16]byte
	sizes   *sizes
}

func newPlan(v meta.View, c *content, s *sizes) *plan {
	x := c.index
	p := &plan{view: v, content: c, sizes: s, cut: v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))}
	p.order = order.New(v.Order, p.cut.N, v.Seed, v.Epoch)
	p.id = p.identify()
	return p
}

// identify names the plan's content: equal ids mean equal batches, whatever
// the dataset is called and whichever daemon asks. What does not change a
// batch's bytes is left out, so that its slabs are shared.
func (p *plan) identify() (id [16]byte) {
	seed, epoch := p.view.Seed, p.view.Epoch
	if p.view.Order.Kind == meta.OrderNone {
		seed, epoch = 0, 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "rankfs plan 1\n%s\n%v %d %d\n%d %d %d %v %v\n",
		p.content.index.Fingerprint(), p.view.Order, seed, epoch,
		p.cut.N, p.cut.Global, p.cut.Ranks, p.cut.Tail, p.view.Step.Unit == meta.UnitChunk))
	copy(id[:], sum[:])
	return id
}

// ID names the content of the plan.
func (p *plan) ID() [16]byte { return p.id }

// Steps is the number of batches of each rank.
func (p *plan) Steps() uint64 { return p.cut.Steps() }

// Once reports whether other epochs have other batches.
func (p *plan) Once() bool { return p.view.Order.Kind != meta.OrderNone }

// runs calls f for each run of neighbouring records of a batch, in order.
func (p *plan) runs(rank, step uint64, f func(first, n uint64)) {
	s := p.cut.Span(rank, step)
	for at := s.First; at < s.First+s.Count; at++ {
		item := p.order.At(at % p.cut.N)
		if p.view.Step.Unit == meta.UnitChunk {
			c := p.content.index.Chunk(int(item))
			f(c.First, c.Records)
		} else {
			f(item, 1)
		}
	}
}

// Records is the number of records in a batch.
func (p *plan) Records(rank, step uint64) (n uint64) {
	if p.view.Step.Unit != meta.UnitChunk {
		return p.cut.Span(rank, step).Count
	}
	p.runs(rank, step, func(_, count uint64) { n += count })
	return n
}

// Repeats is how many records at the end of a batch the epoch has had already.
func (p *plan) Repeats(rank, step uint64) (n uint64) {
	s := p.cut.Span(rank, step)
	if p.view.Step.Unit != meta.UnitChunk {
		return s.Repeat
	}
	for at := s.First + s.Count - s.Repeat; at < s.First+s.Count; at++ {
		n += p.content.index.Chunk(int(p.order.At(at % p.cut.N))).Records
	}
	return n
}

// Size is the number of bytes in a batch.
func (p *plan) Size(rank, step uint64) int64 {
	return p.sizes.get(p, rank, step, func() (size int64) {
		p.runs(rank, step, func(first, n uint64) {
			for i := first; i < first+n; i++ {
				size += p.content.index.Size(i)
			}
		})
		return size
	})
}

// Offsets is the record table of a batch: where each record begins, and where
// the last one ends.
func (p *plan) Offsets(rank, step uint64) []byte {
	table := make([]byte, 8, 8*(p.Records(rank, step)+1))
	at := int64(0)
	p.runs(rank, step, func(first, n uint64) {
		for i := first; i < first+n; i++ {
			at += p.content.index.Size(i)
			table = binary.LittleEndian.AppendUint64(table, uint64(at))
		}
	})
	return table
}

// A group is how much of a batch is fetched by one read: enough records that
// its cost is nothing, little enough that a fill that nobody wants any more
// ends soon.
const (
	groupRecords = 4096
	groupBytes   = 8 << 20
)

var extentPool = sync.Pool{New: func() any { return new([]index.Extent) }}

// Fill writes a batch into dst.
func (p *plan) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	data, err := p.content.data(ctx)
	if err != nil {
		return err
	}
	pooled := extentPool.Get().(*[]index.Extent)
	defer extentPool.Put(pooled)
	extents, bytes := (*pooled)[:0], int64(0)
	flush := func() {
		if err != nil || bytes > int64(len(dst)) {
			return
		}
		err = data.Read(ctx, extents, dst[:bytes])
		dst, extents, bytes = dst[bytes:], extents[:0], 0
	}
	p.runs(rank, step, func(first, n uint64) {
		for i := first; i < first+n && err == nil; i++ {
			e := p.content.index.Extent(i)
			if len(extents) == groupRecords || bytes > 0 && bytes+e.Len > groupBytes {
				flush()
			}
			extents, bytes = appendExtent(extents, e), bytes+e.Len
		}
	})
	flush()
	*pooled = extents[:0]
	if err == nil && len(dst) != 0 {
		return fmt.Errorf("fill batch %w: %d bytes over", meta.ErrCorrupt, len(dst))
	}
	return err
}

// appendExtent joins records that stand side by side.
func appendExtent(extents []index.Extent, e index.Extent) []index.Extent {
	if n := len(extents); n > 0 {
		if last := &extents[n-1]; last.File == e.File && last.Off+last.Len == e.Off {
			last.Len += e.Len
			return extents
		}
	}
	return append(extents, e)
}

// sizes remembers batch sizes, which a listing asks for and a fill again: with
// a shuffled order each is a walk through the index.
type sizes struct {
	cache *ristretto.Cache[string, int64]
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
	return &sizes{c}, nil
}

func (s *sizes) get(p *plan, rank, step uint64, compute func() int64) int64 {
	var key [32]byte
	copy(key[:], p.id[:])
	binary.LittleEndian.PutUint64(key[16:], rank)
	binary.LittleEndian.PutUint64(key[24:], step)
	k := string(key[:])
	size, ok := s.cache.Get(k)
	if !ok {
		size = compute()
		s.cache.Set(k, size, 1) // it may refuse: then it is computed again
	}
	return size
}

func (s *sizes) close() { s.cache.Close() }
