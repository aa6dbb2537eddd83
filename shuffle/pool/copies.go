package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/pieces"
)

// The copies are those of maps that this node has. None is used unchecked: a table against
// what was agreed on, a piece against its table. One that is damaged is given up.
type copies struct {
	*local
	losses  *losses
	damaged atomic.Uint64 // that were given up because of other bytes
}

// pieceOf is what is wanted of each map of a request.
func pieceOf(r gathering.Request) mapfiles.Part {
	return mapfiles.Part{Stage: r.Stage, Number: r.Part, Whole: r.Whole}
}

// suspect inspects a copy of this node whose use has ended with an error, if that can
// mean that it is damaged, and returns the error: to other nodes a copy that is missing
// is one that is damaged.
func (cs *copies) suspect(ctx context.Context, f *files, stage uint64, c state.Commit, err error) error {
	if !isDamage(err) {
		return err
	}
	cs.inspect(ctx, f, stage, c)
	if errors.Is(err, meta.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("copy of map %d %w: %w", c.Map, meta.ErrCorrupt, err)
}

func isDamage(err error) bool {
	return errors.Is(err, meta.ErrCorrupt) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EIO)
}

// inspect reads a copy of this node whole. One that is damaged is given up: its file goes,
// another copy serves, and repair makes one more.
func (cs *copies) inspect(ctx context.Context, f *files, stage uint64, c state.Commit) {
	select {
	case f.inspecting <- struct{}{}:
		defer func() { <-f.inspecting }()
	case <-ctx.Done():
		return
	}
	if !isDamage(f.maps.Verify(stage, c)) {
		return
	}
	j, g, err := cs.numbered(ctx, stage)
	if err != nil {
		return // it goes with its stage
	}
	_ = cs.losses.tell(ctx, j, g, c, func() bool { // logged there
		err := f.maps.Verify(stage, c)
		switch {
		case !isDamage(err):
			return false
		case errors.Is(err, os.ErrNotExist):
			cs.losses.missing(j, g, c)
		default:
			cs.damaged.Add(1)
			cs.config.Log.Error("a copy of a map of the shuffle pool is damaged, and is given up", "job", j.Name, "stage", g.Name,
				"map", c.Map, "copies", len(c.Nodes)-1, "cause", err)
		}
		f.maps.Drop(mapfiles.Path(stage, c))
		return true
	})
}

// inspectAll inspects what an earlier daemon left.
func (cs *copies) inspectAll(ctx context.Context) {
	for _, f := range cs.all() {
		for _, g := range cs.config.State.Stages(f.number) {
			for c := range cs.own(g.Number) {
				if ctx.Err() != nil {
					return
				}
				cs.inspect(ctx, f, g.Number, c)
			}
		}
	}
}

// measure says what the pieces are of maps that are here.
func (cs *copies) measure(ctx context.Context, f *files, r gathering.Request) ([]pieces.Piece, error) {
	all, err := cs.measureSome(ctx, f, r, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// measureSome measures so many parts, gathering.PartsAhead at most, from the one of the request on.
func (cs *copies) measureSome(ctx context.Context, f *files, r gathering.Request, parts int) ([][]pieces.Piece, error) {
	all := make([][]pieces.Piece, parts)
	for k := range all {
		all[k] = make([]pieces.Piece, len(r.Maps))
	}
	var room [gathering.PartsAhead]pieces.Piece
	of := room[:parts]
	for i, c := range r.Maps {
		if err := f.maps.Measure(pieceOf(r), c, of); err != nil {
			return nil, cs.suspect(ctx, f, r.Stage, c, err)
		}
		for k := range all {
			all[k][i] = of[k]
		}
	}
	return all, nil
}

// read reads pieces of maps that are here, one after the other, into dst.
func (cs *copies) read(ctx context.Context, f *files, r gathering.Request, is []pieces.Piece, dst []byte) error {
	for maps := r.Maps; len(maps) > 0; {
		n := min(mapfiles.ReadAhead, len(maps))
		if failed, err := f.maps.Read(ctx, pieceOf(r), maps[:n], is[:n], dst); err != nil {
			return cs.suspect(ctx, f, r.Stage, maps[failed], err)
		}
		dst = dst[pieces.SizeOf(is[:n]):]
		maps, is = maps[n:], is[n:]
	}
	return nil
}

// send sends what maps that are here have of a part; before a whole map its table.
func (cs *copies) send(ctx context.Context, f *files, r gathering.Request, emit func([]byte) error) error {
	for _, c := range r.Maps {
		err := f.maps.Send(pieceOf(r), c, func(t pieces.Table, from io.Reader) error {
			if t != nil {
				if err := emit(t); err != nil {
					return err
				}
			}
			return wire.From(from)(ctx, emit)
		})
		if err != nil {
			return cs.suspect(ctx, f, r.Stage, c, err)
		}
	}
	return nil
}

// readPortion reads some bytes of a piece of a map that is here into dst. They are not checked.
func (cs *copies) readPortion(ctx context.Context, f *files, r gathering.Request, is pieces.Piece, off int64, dst []byte) error {
	return cs.suspect(ctx, f, r.Stage, r.Maps[0], f.maps.ReadSome(pieceOf(r), r.Maps[0], is, off, dst))
}

// sendPortion sends some bytes of a piece, which are not checked.
func (cs *copies) sendPortion(ctx context.Context, f *files, r gathering.Request, off, n int64, emit func([]byte) error) error {
	err := f.maps.SendSome(pieceOf(r), r.Maps[0], off, n, func(from io.Reader) error { return wire.From(from)(ctx, emit) })
	return cs.suspect(ctx, f, r.Stage, r.Maps[0], err)
}

// look looks whether a piece of a map that is here, or the whole map, is right.
func (cs *copies) look(ctx context.Context, f *files, r gathering.Request) error {
	return cs.suspect(ctx, f, r.Stage, r.Maps[0], f.maps.Look(pieceOf(r), r.Maps[0]))
}

// maxRows is how many rows of tables are looked at at a time, as a person waits for it: 64 MiB.
const maxRows = 1 << 22

// weigh adds up what maps that are here have of each part.
func (cs *copies) weigh(ctx context.Context, f *files, r gathering.Request, parts []int64) error {
	for _, c := range r.Maps {
		t, err := f.maps.Table(r.Stage, c)
		if err == nil && t.Parts() != uint64(len(parts)) {
			err = fmt.Errorf("table of map %d %w: it has %d parts", c.Map, meta.ErrCorrupt, t.Parts())
		}
		if err != nil {
			return cs.suspect(ctx, f, r.Stage, c, err)
		}
		begin := int64(0)
		for i := range parts {
			parts[i] += t.End(uint64(i)) - begin
			begin = t.End(uint64(i))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
