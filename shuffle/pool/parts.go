package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/gathering"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/record"
)

// Parts are the parts of the stage, which it has once it is sealed.
type Parts struct{ stageHere }

// Parts are the parts of the stage.
func (g *Stage) Parts() Parts { return Parts{g.stageHere} }

// Size is the size of a part, zero until the stage is sealed.
func (g Parts) Size(ctx context.Context, name meta.Part) (int64, error) {
	is, err := g.sealed(ctx, name, false)
	if isAgain(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	p, err := g.part(ctx, is, name)
	if err != nil {
		return 0, err
	}
	return p.Size(), nil
}

// Open waits until the stage is sealed, and opens a part of it for a thread; zero: it is not known.
func (g Parts) Open(ctx context.Context, thread int32, name meta.Part, wait bool) (File, error) {
	sealed, done := g.pool.waits.Begin(thread, g.number, name)
	defer done()
	is, err := g.sealed(ctx, name, wait)
	if err != nil {
		return nil, err
	}
	sealed()
	p, err := g.part(ctx, is, name)
	if err != nil {
		return nil, err
	}
	return g.pool.maker.Open(ctx, p)
}

// part is a part of a sealed stage, with what its pieces are. A map that seems to be lost may have
// been committed again on another node a moment ago.
func (g Parts) part(ctx context.Context, is state.PoolStage, name meta.Part) (*Part, error) {
	p, err := g.known(ctx, is, name)
	if errors.Is(err, meta.ErrLost) && g.Know(ctx) == nil {
		p, err = g.known(ctx, is, name)
	}
	return p, err
}

// known is the part, by what this node knows of the stage.
func (g Parts) known(ctx context.Context, is state.PoolStage, name meta.Part) (*Part, error) {
	if name.Number >= is.Spec.Parts {
		return nil, g.noPart(is, name)
	}
	f, err := g.pool.local.ownFiles(g.job)
	if err != nil {
		return nil, err
	}
	all := g.config.State.Commits(g.number)
	p := newPart(g.pool.columns.column(f, &gathering.Column{
		Terms: gathering.TermsOf(is), Pieces: merging.Pieces{Number: name.Number, Maps: all},
	}), record.Spec(is.Spec.Records))
	p.Offsets = name.Offsets
	if is.Spec.Records.Kind == meta.NoRecords {
		p.column.Next = is.Spec.Parts - 1 - name.Number
	}
	if is.Spec.Records.Ranges {
		p.rangeOf(is.Spec, all)
	}
	if name.Ranged {
		p.column.Maps = p.column.Maps.Between(name.From, name.To)
	}
	if g.Generation() != is.Generation {
		return nil, g.wasReset()
	}
	if err := g.bind(); err != nil {
		return nil, err
	}
	return p, p.measure(ctx)
}

func (g Parts) noPart(is state.PoolStage, name meta.Part) error {
	return fmt.Errorf("part %d of stage %s %w: it has parts 0 to %d", name.Number, g.path(), meta.ErrNotExist, is.Spec.Parts-1)
}

// sealTime bounds how long an open of a part waits for the maps. A stage may take hours;
// a program that asks for less uses O_NONBLOCK, and one that is interrupted stops.
const sealTime = 24 * time.Hour

// sealed waits until all maps are committed, and returns the stage. Once there are attempts its
// spec stays, and an open of a part that it will never have does not wait.
func (g Parts) sealed(ctx context.Context, name meta.Part, wait bool) (state.PoolStage, error) {
	ctx, cancel := context.WithTimeout(ctx, sealTime)
	defer cancel()
	asked := false
	for {
		changed := g.config.State.Changed()
		is, err := g.is()
		switch {
		case err != nil, is.Sealed:
			return is, err
		case is.Specified() && is.Begun && name.Number >= is.Spec.Parts:
			return is, g.noPart(is, name)
		case !asked:
			if err := g.Know(ctx); err != nil {
				return is, err
			}
			asked = true
			continue
		case !wait:
			return is, unix.EAGAIN
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return is, fmt.Errorf("stage %s, of which %d maps are committed: %w", g.path(), is.Maps, cause(ctx))
		}
	}
}

func isAgain(err error) bool { return errors.Is(err, unix.EAGAIN) }
