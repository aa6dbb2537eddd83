package pool

import (
	"context"
	"fmt"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A stage is the stage of that number, as its maps, its attempts and its parts share it. It
// has no state of its own: the spec, the generation, and whether it is sealed, are read from
// the cluster's state at each call, which fails once the stage is gone. The bytes are in the
// job's files. What was opened of a generation before a reset fails with ErrStale.
type stage struct {
	*agreed
	job    state.PoolJob
	name   string
	number uint64
}

// Number is the stage's, which no other had or will have.
func (g stage) Number() uint64 { return g.number }

// Stands reports whether the cluster has the stage still, as far as this node knows.
func (g stage) Stands() bool {
	_, err := g.is()
	return err == nil
}

func (g stage) named() state.StageName {
	return state.StageName{Job: g.job.Name, Name: g.name, Number: g.number}
}

func (g stage) path() string { return g.job.Name + "/" + g.name }

// is the stage as it is now.
func (g stage) is() (state.PoolStage, error) {
	is, ok := g.config.State.Stage(g.job.Number, g.name)
	if !ok || is.Number != g.number {
		return state.PoolStage{}, fmt.Errorf("stage %s of the shuffle pool %w", g.path(), meta.ErrNotExist)
	}
	return is, nil
}

func (g stage) wasReset() error {
	return meta.Worded(meta.ErrStale, "stage %s was reset: open it anew", g.path())
}

// Generation counts the resets of the stage and its other specs; it is a number that no stage
// has once this one is gone.
func (g stage) Generation() uint64 {
	is, err := g.is()
	if err != nil {
		return 1<<64 - 1
	}
	return is.Generation
}

// specified is the stage once it has a spec, if it has one: that may have been written
// on another node a moment ago.
func (g stage) specified(ctx context.Context) (state.PoolStage, error) {
	is, err := g.is()
	if err != nil || is.Specified() {
		return is, err
	}
	if err := g.Know(ctx); err != nil {
		return is, err
	}
	return g.is()
}

// winner is the attempt of a map that has won, if one has and was not removed.
func (g stage) winner(number uint64) (state.Commit, bool) {
	c, ok := g.config.State.Commit(g.number, number)
	return c, ok && len(c.Nodes) > 0
}

// bind has the commits that this node knows of outlive a power failure. They may have been
// answered before that; but no reader is given bytes of a map in whose place, after such a
// failure, another attempt could have others.
func (g stage) bind() error { return g.config.Member.Lasts() }
