package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/disk"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/pieces"
	"rankfs/shuffle/record"
)

// Maps are the maps of the stage that are committed, on all nodes.
type Maps struct{ stageHere }

// Maps are the maps of the stage.
func (g *Stage) Maps() Maps { return Maps{g.stageHere} }

// List has the numbers of those that are committed.
func (g Maps) List(ctx context.Context) (numbers []uint64, err error) {
	if err := g.Know(ctx); err != nil {
		return nil, err
	}
	for _, c := range g.config.State.Commits(g.number).All() {
		if len(c.Nodes) > 0 {
			numbers = append(numbers, c.Map)
		}
	}
	return numbers, nil
}

// Find is the map that is committed. One that this node does not know of may have been
// committed on another a moment ago.
func (g Maps) Find(ctx context.Context, number uint64) (state.Commit, error) {
	if c, ok := g.winner(number); ok {
		return c, nil
	}
	if err := g.Know(ctx); err != nil {
		return state.Commit{}, err
	}
	if c, ok := g.winner(number); ok {
		return c, nil
	}
	return state.Commit{}, fmt.Errorf("map %d of stage %s %w: no attempt of it is committed", number, g.path(), meta.ErrNotExist)
}

// Remove gives up a map, on all nodes.
func (g Maps) Remove(ctx context.Context, number uint64) error {
	c, err := g.Find(ctx, number)
	if err != nil {
		return err
	}
	_, err = g.agree(ctx, &state.DropMap{StageName: g.named(), Map: number, Sum: c.Sum})
	return err
}

// Open opens a map: the file itself where there is a copy of it that is as it should be, and
// one file; else what is made of it here, or what another node sends.
func (g Maps) Open(ctx context.Context, number uint64) (File, error) {
	pool := g.pool
	is, err := g.is()
	if err != nil {
		return nil, err
	}
	c, err := g.Find(ctx, number)
	if err != nil {
		return nil, err
	}
	if g.Generation() != is.Generation {
		return nil, g.wasReset()
	}
	f, err := g.files()
	if err == nil {
		err = g.bind()
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(c.Nodes, pool.config.Cluster.Self()) {
		file, err := f.maps.Whole(g.number, c)
		if file != nil {
			return openMap{file}, nil
		}
		if err != nil {
			err = pool.copies.suspect(ctx, f, g.number, c, err)
		}
		if err != nil && !errors.Is(err, meta.ErrCorrupt) && !errors.Is(err, disk.ErrGone) {
			return nil, err
		}
	}
	p := newPart(pool.columns.column(f, &gathering.Column{
		Terms: gathering.TermsOf(is), Whole: true,
		Pieces: merging.Pieces{Number: number, Maps: state.MapsOf(c), Each: []pieces.Piece{{Size: c.Size, Sum: c.Sum, Begin: -1}}},
	}), record.Spec{})
	p.size = c.Size
	return pool.maker.Open(ctx, p)
}

type openMap struct{ *os.File }

// Fd is the file's.
func (o openMap) Fd() int { return int(o.File.Fd()) }

// Release closes it.
func (o openMap) Release() { o.Close() }
