package plan

import (
	"rankfs/meta"
	"rankfs/shuffle/order"
)

// A Plan says which records each batch of a view holds.
//
// Equal ids mean equal batches: same records in the same order. All batches together
// are the epoch's order, cut into steps; where ranks are changes only which of them
// reads a record of a step. It never changes once it is placed, and may then be used
// concurrently.
type Plan struct {
	version   *Version
	view      meta.View
	cut       meta.Cut
	order     order.Order
	id        [16]byte
	chunks    [16]byte   // names the chunks that batches are, if they are chunks
	placement *placement // nil: which rank reads what follows from positions alone
}

// New is the plan of a view whose ranks are anywhere.
func New(v meta.View, of *Version) *Plan {
	x := of.index
	p := &Plan{version: of, view: v, cut: v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))}
	p.order = order.New(v.Order, p.cut.N, v.Seed, v.Epoch)
	p.id = p.identify("")
	if v.ByChunk() {
		p.chunks = chunksOf(of)
	}
	return p
}

// OfChunks is the plan whose steps are the chunks of a dataset, in their order.
func OfChunks(of *Version) *Plan {
	p := New(everyChunk, of)
	p.id = p.chunks
	return p
}

var everyChunk = meta.View{Ranks: 1, Step: meta.BatchSize{N: 1, Unit: meta.UnitChunk}}

// chunksOf names the chunks of an index, independent of ranks and order.
func chunksOf(of *Version) [16]byte {
	x := of.index
	return identify(x, everyChunk, everyChunk.Cut(x.Records(), x.Bytes(), uint64(x.Chunks())), " parts")
}

// identify names the plan's content, where that is of a kind.
func (p *Plan) identify(kind string) [16]byte { return identify(p.version.index, p.view, p.cut, kind) }

// ID names the content of the plan.
func (p *Plan) ID() [16]byte { return p.id }

// ChunksID names the chunks that batches are, in every plan where they are chunks;
// zero where they are not.
func (p *Plan) ChunksID() [16]byte { return p.chunks }

// View is the view that the plan is of.
func (p *Plan) View() meta.View { return p.view }

// Cut is the cut of the order, by the view.
func (p *Plan) Cut() meta.Cut { return p.cut }

// Steps is the number of batches of each rank.
func (p *Plan) Steps() uint64 { return p.cut.Steps() }

// Placed reports whether the records that a rank reads depend on where ranks are.
func (p *Plan) Placed() bool { return p.placement != nil }

// OwnerHost is the host that owns a chunk by where the ranks are; none where that
// makes no difference, or batches are chunks.
func (p *Plan) OwnerHost(chunk int) (host string, ok bool) {
	if p.placement == nil || p.placement.chunks != nil {
		return "", false
	}
	return p.placement.owner(chunk), true
}

// Key names a batch: where that is a chunk, so that all epochs and orders have it
// by one name.
func (p *Plan) Key(rank, step uint64) meta.Key {
	if p.view.ByChunk() {
		if r, err := p.run(rank, step); err == nil {
			return p.keyOf(r, rank, step)
		}
	}
	return meta.Key{Series: p.id, Rank: rank, Step: step}
}

// Known is Key where no stretch has to be divided for it, which may take a second and
// read all of the index that the stretch has.
func (p *Plan) Known(rank, step uint64) (k meta.Key, ok bool) {
	if !p.view.ByChunk() || p.placement == nil {
		return p.Key(rank, step), true
	}
	r, ok := p.placement.known(rank, step)
	if !ok {
		return meta.Key{}, false
	}
	return p.keyOf(r, rank, step), true
}

// keyOf names the batch of a run of chunks.
func (p *Plan) keyOf(r run, rank, step uint64) meta.Key {
	if r.n != 1 {
		return meta.Key{Series: p.id, Rank: rank, Step: step}
	}
	return meta.Key{Series: p.chunks, Step: p.order.At(r.at(0) % p.cut.N)}
}

// Find is the inverse of Key, as far as it is known which rank reads what.
func (p *Plan) Find(k meta.Key) (rank, step uint64, ok bool) {
	if k.Series == p.id {
		return k.Rank, k.Step, true
	}
	if k.Series != p.chunks || !p.view.ByChunk() || k.Step >= p.cut.N {
		return 0, 0, false
	}
	position := p.order.Position(k.Step)
	if p.placement != nil {
		return p.placement.reader(position)
	}
	rank, step = p.cut.Reader(position)
	return rank, step, step < p.cut.Steps()
}

// Reader is the rank whose batch is a chunk, if that is known or soon found out: an
// epoch of one stretch is divided for it.
func (p *Plan) Reader(chunk int) (rank uint64, ok bool) {
	k := meta.Key{Series: p.chunks, Step: uint64(chunk)}
	rank, _, ok = p.Find(k)
	if !ok && p.placement != nil && p.version.index.Chunks() <= stretch {
		if _, err := p.run(0, 0); err == nil { // divides them all
			rank, _, ok = p.Find(k)
		}
	}
	return rank, ok
}

// run finds the positions of a batch.
func (p *Plan) run(rank, step uint64) (run, error) {
	if p.placement == nil {
		s := p.cut.Span(rank, step)
		return run{first: s.First, n: s.Count}, nil
	}
	return p.placement.positions(rank, step)
}

// AppendChunks appends the chunks that a batch is made of, in order, where positions
// are chunks.
func (p *Plan) AppendChunks(chunks []int, rank, step uint64) ([]int, error) {
	r, err := p.run(rank, step)
	if err != nil {
		return chunks, err
	}
	for i := range r.n {
		chunks = append(chunks, int(p.order.At(r.at(i)%p.cut.N)))
	}
	return chunks, nil
}

// RecordsAtOnce is how many records of a batch are handled at a time: enough that the
// fixed cost for each such group is nothing, few enough that a caller that leaves soon
// gets away.
const RecordsAtOnce = 4096

// Each calls f with the records of a batch in order, without so many of the first,
// until one call fails: with as many at a time as room has capacity for, and fewer
// at the end. They are in room, and good until f returns. Without room Each makes it,
// for RecordsAtOnce.
func (p *Plan) Each(rank, step, skip uint64, room []uint64, f func(records []uint64) error) error {
	r, err := p.run(rank, step)
	if err != nil {
		return err
	}
	if room == nil {
		room = make([]uint64, 0, min(RecordsAtOnce, p.Records(rank, step)))
	}
	records, i := room[:0], uint64(0)
	if !p.view.ByChunk() {
		i, skip = min(skip, r.n), 0
	}
	for ; i < r.n; i++ {
		first, n := p.order.At(r.at(i)%p.cut.N), uint64(1)
		if p.view.ByChunk() {
			first, n = p.version.index.ChunkRecords(int(first))
			past := min(skip, n)
			first, n, skip = first+past, n-past, skip-past
		}
		for ; n > 0; first, n = first+1, n-1 {
			if records = append(records, first); len(records) < cap(room) {
				continue
			}
			if err := f(records); err != nil {
				return err
			}
			records = records[:0]
		}
	}
	if len(records) == 0 {
		return nil
	}
	return f(records)
}

// Records is the number of records in a batch.
func (p *Plan) Records(rank, step uint64) uint64 { return p.count(rank, step, 0) }

// Repeats is the number of records at the end of a batch that the epoch has had already.
func (p *Plan) Repeats(rank, step uint64) uint64 { return p.count(rank, step, p.cut.N) }

// count is the number of records of a batch at positions from a certain one on.
func (p *Plan) count(rank, step, from uint64) (n uint64) {
	r, err := p.run(rank, step)
	if err != nil {
		return 0 // as for every batch: opening one says why
	}
	for i := r.n; i > 0 && r.at(i-1) >= from; i-- {
		if !p.view.ByChunk() {
			if r.list == nil {
				return min(r.n, r.first+r.n-min(from, r.first+r.n))
			}
			n++
			continue
		}
		_, records := p.version.index.ChunkRecords(int(p.order.At(r.at(i-1) % p.cut.N)))
		n += records
	}
	return n
}
