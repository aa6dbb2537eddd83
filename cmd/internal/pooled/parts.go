package pooled

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"

	"rankfs/cache"
	"rankfs/meta"
	"rankfs/shuffle/pool"
)

// Parts makes files of parts in a cache: a slab can be made again from the maps when it was
// given up. A reducer reads its part once, so few stay that were read, and none that
// cannot be opened any more: the next part has the memory of one that goes. Fresh memory takes longer
// to get than the bytes do. The lock guards read, and is not held while the cache is called.
type Parts struct {
	Cache *cache.Cache

	mu   sync.Mutex
	read []wasRead // last, the latest at the end
}

// A wasRead is a part that was read.
type wasRead struct {
	key cache.Key
	of  pool.Generation
}

// partsRead is how many of the parts that were read last stay: a part may be read again.
const partsRead = 4

// Open implements pool.Maker.
func (p *Parts) Open(ctx context.Context, of *pool.Part) (pool.File, error) {
	series := seriesOf(of)
	is := wasRead{series.Key(0, 0), of.Of()}
	p.discard(p.stale(is.of))
	s, err := p.Cache.Open(ctx, nil, series, 0, 0, is.key)
	if err != nil {
		return nil, withNext(err)
	}
	return openPart{s, is, p}, nil
}

// withNext adds to the error of a part that has room nowhere what would help.
func withNext(err error) error {
	if c := new(cache.Shortage); errors.As(err, &c) && c.TooLarge {
		return fmt.Errorf("%w; mount with --ram %s or more, or as much in one --nvme DIR:SIZE, or make parts smaller by more parts= in the spec of the stage",
			err, meta.FormatRoom(meta.WholePages(c.Size)))
	}
	return err
}

// stale takes those of stages that are gone, or were reset, which that of a part is not that
// is opened now.
func (p *Parts) stale(now pool.Generation) (gone []wasRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stay []wasRead
	for _, one := range p.read {
		if one.of == now || one.of.Current() {
			stay = append(stay, one)
		} else {
			gone = append(gone, one)
		}
	}
	p.read = stay
	return gone
}

// add has the part go that was read longest ago, if more were than stay.
func (p *Parts) add(is wasRead) {
	p.mu.Lock()
	p.read = append(slices.DeleteFunc(p.read, func(other wasRead) bool { return other.key == is.key }), is)
	var gone []wasRead
	if n := len(p.read) - partsRead; n > 0 {
		gone = slices.Clone(p.read[:n])
		p.read = slices.Delete(p.read, 0, n)
	}
	p.mu.Unlock()
	p.discard(gone)
}

func (p *Parts) discard(parts []wasRead) {
	for _, one := range parts {
		p.Cache.Discard(one.key)
	}
}

// An openPart is a part that is open.
type openPart struct {
	*cache.Slab
	is    wasRead
	parts *Parts
}

// Release implements pool.File.
func (o openPart) Release() {
	o.Slab.Release()
	o.parts.add(o.is)
}

// A part is a part of the pool as a series of one batch.
type part struct {
	*pool.Part
	id [16]byte
}

// seriesOf is the series of a part. Numbers of stages are never used again, and a
// generation's maps never change, so its name is that of its bytes. Parts of a stage are
// packed alike, and those of all stages of a job are for that job. A part is made when it is
// opened, and a reducer reads it once.
func seriesOf(of *pool.Part) *cache.Series {
	b := []byte("part")
	for _, n := range of.Name() {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	p := part{of, [16]byte(sum[:16])}
	return &cache.Series{
		ID: p.id, Dataset: "shuffle:" + strconv.FormatUint(of.Stage(), 10), Job: jobOf(of), Steps: 1,
		Once: true, Keys: p, Find: p.Find, Course: p, Filler: p,
	}
}

func jobOf(of *pool.Part) (j cache.Job) {
	number, weight := of.By()
	copy(j.ID[:], "shuffle")
	binary.LittleEndian.PutUint64(j.ID[8:], number)
	j.Weight = float64(weight) / meta.MaxWeight
	return j
}

// Key implements cache.Keys.
func (p part) Key(rank, step uint64) cache.Key {
	return cache.Key{Series: p.id, Rank: rank, Step: step}
}

// Known implements cache.Keys.
func (p part) Known(rank, step uint64) (k cache.Key, ok bool) { return p.Key(rank, step), true }

// Find is the inverse of Key.
func (p part) Find(k cache.Key) (rank, step uint64, ok bool) {
	return k.Rank, k.Step, k.Series == p.id
}

// Next implements cache.Course: nothing follows.
func (p part) Next() *cache.Series { return nil }

// Size implements cache.Filler.
func (p part) Size(uint64, uint64) int64 { return p.Part.Size() }

// Fill implements cache.Filler.
func (p part) Fill(ctx context.Context, _, _ uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return cache.Whole(p.Part.Fill(ctx, dst))
}
