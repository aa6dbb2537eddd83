package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/cache/peers"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A store is what this node has for others: records of the chunks whose owner it
// is, or of a source that is on its disks alone, and indexes.
type store struct{ node *Node }

// pieceBytes is how much of a record is read and sent at a time.
const pieceBytes = 1 << 20

// Gather implements peers.Store.
func (s store) Gather(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	return s.gather(ctx, dataset, runs, emit, false)
}

// Kept implements peers.Store. What it does not have it does not fetch.
func (s store) Kept(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	return s.gather(ctx, dataset, runs, emit, true)
}

func (s store) gather(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error, kept bool) error {
	d := s.node.catalog.byIndex(hex.EncodeToString(dataset[:]))
	if d == nil {
		return meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", dataset[:8])
	}
	c := d.content
	data, err := c.data(ctx)
	if err != nil {
		return err
	}
	room, err := unix.Mmap(-1, 0, pieceBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("gather records: %w: %w", meta.ErrBusy, err)
	}
	defer unix.Munmap(room)
	g := &giving{content: c, room: room, emit: emit, kept: kept, read: data.Read}
	if c.remote {
		g.parts = newParts(c, s.node.sizes, s.node.cache, c.readers.Load())
	}
	for _, r := range runs {
		if r.First >= c.index.Records() || r.N > c.index.Records()-r.First {
			return fmt.Errorf("records %d to %d %w: there are %d", r.First, r.First+r.N, meta.ErrInvalid, c.index.Records())
		}
		if err := g.give(ctx, r.First, r.N); err != nil {
			return err
		}
	}
	return nil
}

// File implements peers.Store.
func (s store) File(_ context.Context, hash peers.ID) (*os.File, int64, error) {
	f, err := os.Open(s.node.catalog.indexes.path(hex.EncodeToString(hash[:])))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", hash[:8])
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// giving is one answer under way.
type giving struct {
	content *content
	parts   *parts // nil: straight from the source
	kept    bool   // no more than what is in the cache
	room    []byte
	read    func(ctx context.Context, extents []index.Extent, dst []byte) error
	emit    func([]byte) error
}

// give sends n records from first on.
func (g *giving) give(ctx context.Context, first, n uint64) error {
	x := g.content.index
	for n > 0 {
		number := x.ChunkOf(first)
		c := x.Chunk(number)
		m := min(n, c.First+c.Records-first)
		if g.kept && !g.parts.has(number) {
			return errNotKept
		}
		err := g.fromPart(ctx, number, first, m)
		if errors.Is(err, errNoPart) {
			err = g.fromSource(ctx, recordExtents(x, first, m))
		}
		if err != nil {
			return err
		}
		first, n = first+m, n-m
	}
	return nil
}

var errNotKept = meta.Worded(meta.ErrBusy, "the chunk is not kept here, and the cache is busy with others")

var errNoPart = errors.New("the chunk is not in the cache")

func (g *giving) fromPart(ctx context.Context, number int, first, n uint64) error {
	if g.parts == nil {
		return errNoPart
	}
	s, err := g.parts.open(ctx, number)
	if errors.Is(err, meta.ErrNoSpace) {
		return errNoPart
	}
	if err != nil {
		return err
	}
	defer s.Release()
	from, to := s.offset(first), s.offset(first+n)
	for from < to {
		piece := g.room[:min(int64(len(g.room)), to-from)]
		if _, err := s.ReadAt(piece, from); err != nil {
			return err
		}
		if err := g.emit(piece); err != nil {
			return err
		}
		from += int64(len(piece))
	}
	return nil
}

func (g *giving) fromSource(ctx context.Context, extents []index.Extent) error {
	for len(extents) > 0 {
		n, bytes := 0, int64(0)
		for n < len(extents) && bytes+extents[n].Len <= int64(len(g.room)) {
			bytes += extents[n].Len
			n++
		}
		now := extents[:n]
		if n == 0 { // longer than the room: a part of it
			e := extents[0]
			e.Len = int64(len(g.room))
			now, bytes = []index.Extent{e}, e.Len
			extents[0].Off, extents[0].Len = e.Off+e.Len, extents[0].Len-e.Len
		} else {
			extents = extents[n:]
		}
		if err := g.read(ctx, now, g.room[:bytes]); err != nil {
			return err
		}
		if err := g.emit(g.room[:bytes]); err != nil {
			return err
		}
	}
	return nil
}
