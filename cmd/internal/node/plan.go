package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/dgraph-io/ristretto/v2"

	"rankfs/cache"
	"rankfs/cache/peers"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A filler is a view of one version of a dataset: it knows which records each
// batch holds, and fetches them. It is the cache's cache.Plan.
type filler struct {
	view    meta.View
	cut     meta.Cut
	order   order.Order
	content *content
	id      [16]byte
	sizes   *sizes
	parts   *parts // of what the batches are made, if not straight from the source
	roomy   bool   // this node's cache alone has room for the parts
	shared  bool   // the plan of those parts

	chunks    [16]byte       // names the chunks that batches are, if they are chunks
	following func() *filler // of the next epoch

	placement *placement // nil: who reads what follows from positions alone
	readers   *readers   // of parts
	peers     *peers.Client
	formers   func() []former // of which nodes may have chunks
}

func newFiller(v meta.View, c *content, s *sizes) *filler {
	x := c.index
	p := &filler{view: v, content: c, sizes: s, cut: v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))}
	p.order = order.New(v.Order, p.cut.N, v.Seed, v.Epoch)
	p.id = p.identify("")
	p.following = func() *filler { return nil }
	p.formers = func() []former { return nil }
	if v.Step.Unit == meta.UnitChunk {
		p.chunks = chunksOf(v, c)
	}
	return p
}

// chunksOf names the chunks of an index, whoever reads them in which order.
func chunksOf(v meta.View, c *content) [16]byte {
	chunks := &filler{view: meta.View{Ranks: 1, Step: meta.BatchSize{N: 1, Unit: meta.UnitChunk}}, content: c}
	chunks.cut = chunks.view.Cut(c.index.Records(), c.index.Bytes(), uint64(c.index.Chunks()))
	return chunks.identify(" parts")
}

// identify names the plan's content: equal ids mean equal batches, whatever
// the dataset is called and whichever daemon asks. What does not change a
// batch's bytes is left out, so that its slabs are shared.
func (p *filler) identify(kind string) (id [16]byte) {
	seed, epoch := p.view.Seed, p.view.Epoch
	if p.view.Order.Kind == meta.OrderNone {
		seed, epoch = 0, 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "rankfs plan 1%s\n%s\n%v %d %d\n%d %d %d %v %v\n",
		kind, p.content.index.Fingerprint(), p.view.Order, seed, epoch,
		p.cut.N, p.cut.Global, p.cut.Ranks, p.cut.Tail, p.view.Step.Unit == meta.UnitChunk))
	copy(id[:], sum[:])
	return id
}

// ID names the content of the plan.
func (p *filler) ID() [16]byte { return p.id }

// Dataset names what all views of a dataset are made of.
func (p *filler) Dataset() string { return p.content.index.Fingerprint() }

// Steps is the number of batches of each rank.
func (p *filler) Steps() uint64 { return p.cut.Steps() }

// Key names the content of a batch: where that is a chunk, so that all epochs
// and orders have it by one name.
func (p *filler) Key(rank, step uint64) cache.Key {
	if p.view.Step.Unit == meta.UnitChunk {
		if r, err := p.run(rank, step); err == nil && r.n == 1 {
			return cache.Key{Plan: p.chunks, Step: p.order.At(r.at(0) % p.cut.N)}
		}
	}
	return cache.Key{Plan: p.id, Rank: rank, Step: step}
}

// Find is the inverse of Key.
func (p *filler) Find(k cache.Key) (rank, step uint64, ok bool) {
	if k.Plan == p.id {
		return k.Rank, k.Step, true
	}
	if k.Plan != p.chunks || p.view.Step.Unit != meta.UnitChunk || k.Step >= p.cut.N {
		return 0, 0, false
	}
	position := p.order.Position(k.Step)
	if p.placement != nil {
		return p.placement.reader(position)
	}
	rank, step = p.cut.Reader(position)
	return rank, step, step < p.cut.Steps()
}

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
	if p.view.Step.Unit == meta.UnitChunk {
		return false
	}
	return p.view.Order.Kind != meta.OrderNone || p.parts != nil
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
	if p.readers != nil && p.readers.placed != nil {
		if id, ok := c.owners.At(p.readers.placed.home(chunk)); ok {
			return id
		}
	}
	return c.owners.Of(p.seed(), chunk, c.hosts(chunk))
}

// seed makes the owners of datasets' chunks independent of one another.
func (p *filler) seed() uint64 { return seedOf(p.content.id) }

func seedOf(id peers.ID) uint64 { return binary.LittleEndian.Uint64(id[:]) }

// A handful is how many records are dealt with at a time: enough that what is
// done once a handful is nothing, few enough that a fill that nobody wants any
// more ends soon.
const handfulRecords = 4096

// A handful is the room for one, used again and again.
type handful struct {
	records []uint64
	extents []index.Extent
	pieces  []piece
}

var handfuls = sync.Pool{New: func() any { return &handful{records: make([]uint64, 0, handfulRecords)} }}

// each calls f with the records of a batch in order, a handful at a time, until
// one fails.
func (p *filler) each(rank, step uint64, f func(g *handful) error) error {
	return p.eachFrom(rank, step, 0, f)
}

// eachFrom is each without the first records.
func (p *filler) eachFrom(rank, step, skip uint64, f func(g *handful) error) error {
	g := handfuls.Get().(*handful)
	defer handfuls.Put(g)
	g.records = g.records[:0]
	r, err := p.run(rank, step)
	if err != nil {
		return err
	}
	i := uint64(0)
	if p.view.Step.Unit != meta.UnitChunk {
		i, skip = min(skip, r.n), 0
	}
	for ; i < r.n; i++ {
		first, n := p.order.At(r.at(i)%p.cut.N), uint64(1)
		if p.view.Step.Unit == meta.UnitChunk {
			c := p.content.index.Chunk(int(first))
			past := min(skip, c.Records)
			first, n, skip = c.First+past, c.Records-past, skip-past
		}
		for ; n > 0; first, n = first+1, n-1 {
			if g.records = append(g.records, first); len(g.records) < handfulRecords {
				continue
			}
			if err := f(g); err != nil {
				return err
			}
			g.records = g.records[:0]
		}
	}
	if len(g.records) == 0 {
		return nil
	}
	return f(g)
}

// A run is the positions of a batch.
type run struct {
	first, n uint64
	list     []int32 // of them, counted from first; nil: they follow one another
}

func (r run) at(i uint64) uint64 {
	if r.list != nil {
		return r.first + uint64(r.list[i])
	}
	return r.first + i
}

// run finds the positions of a batch.
func (p *filler) run(rank, step uint64) (run, error) {
	if p.placement == nil {
		s := p.cut.Span(rank, step)
		return run{first: s.First, n: s.Count}, nil
	}
	list, base, err := p.placement.positions(rank, step)
	return run{first: base, n: uint64(len(list)), list: list}, err
}

// Records is the number of records in a batch.
func (p *filler) Records(rank, step uint64) uint64 {
	return p.count(rank, step, 0)
}

// Repeats is how many records at the end of a batch the epoch has had already.
func (p *filler) Repeats(rank, step uint64) uint64 {
	return p.count(rank, step, p.cut.N)
}

// count is the number of records of a batch at positions from a certain one on.
func (p *filler) count(rank, step, from uint64) (n uint64) {
	r, err := p.run(rank, step)
	if err != nil {
		return 0 // as for every batch: opening one says why
	}
	for i := r.n; i > 0 && r.at(i-1) >= from; i-- {
		if p.view.Step.Unit != meta.UnitChunk {
			if r.list == nil {
				return min(r.n, r.first+r.n-min(from, r.first+r.n))
			}
			n++
			continue
		}
		n += p.content.index.Chunk(int(p.order.At(r.at(i-1) % p.cut.N))).Records
	}
	return n
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
		if p.Records(rank, step) <= handfulRecords {
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
	copy(key[:], p.id[:])
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
