package batch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/meta"
)

// A Server gives other nodes records: of the chunks that this node owns, or of a source
// that is on its disks alone. It is most of a peers.Store, and called concurrently.
type Server struct {
	Find  func(index peers.ID) *Version // nil: this node does not have it
	Slabs func(*Version) Slabs          // of a remote source
}

// Slabs is the cache, as far as it has the chunks of one version. It may be used
// concurrently.
type Slabs interface {
	// Chunk returns the slab of a chunk, filled by Version.FillChunk if the cache has
	// none. An error that wraps meta.ErrNoSpace means that there is no room for it.
	Chunk(ctx context.Context, number int) (Slab, error)
	// HasChunk reports whether a chunk is in the cache.
	HasChunk(number int) bool
}

// A Slab is a chunk in the cache, which stays there until Release.
type Slab interface {
	io.ReaderAt
	Release()
}

// Gather implements peers.Store.
func (s Server) Gather(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	return s.gather(ctx, dataset, runs, emit, false)
}

// Kept implements peers.Store. It sends cached records only, and fetches none.
func (s Server) Kept(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	return s.gather(ctx, dataset, runs, emit, true)
}

// gather sends the records of some runs, with kept those alone that are cached. Their bytes go
// through one buffer, which is not on Go's heap.
func (s Server) gather(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error, kept bool) error {
	v := s.Find(dataset)
	if v == nil {
		return meta.Worded(meta.ErrNotExist, "index %x does not exist on this node", dataset[:8])
	}
	data, err := v.Source.Data(ctx)
	if err != nil {
		return err
	}
	room, err := unix.Mmap(-1, 0, sendBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return meta.Worded(meta.ErrBusy, "gather records: %w", err)
	}
	defer unix.Munmap(room)
	a := &answer{index: v.Index, data: data, room: room, emit: emit, kept: kept}
	if v.Source.Remote {
		a.slabs = s.Slabs(v)
	}
	for _, r := range runs {
		if r.First >= v.Index.Records() || r.N > v.Index.Records()-r.First {
			return fmt.Errorf("records %d to %d %w: there are %d", r.First, r.First+r.N, meta.ErrInvalid, v.Index.Records())
		}
		if err := a.send(ctx, r.First, r.N); err != nil {
			return err
		}
	}
	return nil
}

// sendBytes is how much of a record is read and sent at a time.
const sendBytes = 1 << 20

// An answer is one request under way.
type answer struct {
	index *index.Index
	data  *fetch.Dataset
	slabs Slabs // nil: straight from the source
	kept  bool  // send cached records only
	room  []byte
	emit  func([]byte) error
}

// send sends n records from first on.
func (a *answer) send(ctx context.Context, first, n uint64) error {
	for n > 0 {
		number := a.index.ChunkOf(first)
		c := a.index.Chunk(number)
		m := min(n, c.First+c.Records-first)
		if a.kept && (a.slabs == nil || !a.slabs.HasChunk(number)) {
			return errNotKept
		}
		err := a.fromChunk(ctx, number, first, m)
		if errors.Is(err, errNoChunk) {
			err = a.fromSource(ctx, recordExtents(a.index, first, m))
		}
		if err != nil {
			return err
		}
		first, n = first+m, n-m
	}
	return nil
}

var errNotKept = meta.Worded(meta.ErrBusy, "the chunk is not kept here, and the cache is busy with others")

var errNoChunk = errors.New("the chunk is not in the cache")

func (a *answer) fromChunk(ctx context.Context, number int, first, n uint64) error {
	if a.slabs == nil {
		return errNoChunk
	}
	s, err := a.slabs.Chunk(ctx, number)
	if errors.Is(err, meta.ErrNoSpace) {
		return errNoChunk
	}
	if err != nil {
		return err
	}
	defer s.Release()
	l := layoutOf(a.index, number)
	from, to := l.offset(first), l.offset(first+n)
	for from < to {
		buf := a.room[:min(int64(len(a.room)), to-from)]
		if _, err := s.ReadAt(buf, from); err != nil {
			return err
		}
		if err := a.emit(buf); err != nil {
			return err
		}
		from += int64(len(buf))
	}
	return nil
}

func (a *answer) fromSource(ctx context.Context, extents []index.Extent) error {
	for len(extents) > 0 {
		n, bytes := 0, int64(0)
		for n < len(extents) && bytes+extents[n].Len <= int64(len(a.room)) {
			bytes += extents[n].Len
			n++
		}
		now := extents[:n]
		if n == 0 { // longer than the room: a part of it
			e := extents[0]
			e.Len = int64(len(a.room))
			now, bytes = []index.Extent{e}, e.Len
			extents[0].Off, extents[0].Len = e.Off+e.Len, extents[0].Len-e.Len
		} else {
			extents = extents[n:]
		}
		if err := a.data.Read(ctx, now, a.room[:bytes]); err != nil {
			return err
		}
		if err := a.emit(a.room[:bytes]); err != nil {
			return err
		}
	}
	return nil
}
