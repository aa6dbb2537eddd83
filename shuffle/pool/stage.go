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
	job    *Job
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
	return state.StageName{Job: g.job.is.Name, Name: g.name, Number: g.number}
}

func (g stage) path() string { return g.job.is.Name + "/" + g.name }

// is the stage as it is now.
func (g stage) is() (state.PoolStage, error) {
	is, ok := g.job.pool.config.State.Stage(g.job.is.Number, g.name)
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
	if err := g.job.pool.Know(ctx); err != nil {
		return is, err
	}
	return g.is()
}

// winner is the attempt of a map that has won, if one has and was not removed.
func (g stage) winner(number uint64) (state.Commit, bool) {
	c, ok := g.job.pool.config.State.Commit(g.number, number)
	return c, ok && len(c.Nodes) > 0
}

// A Stage is one stage of a job.
type Stage struct{ stage }

// Spec is the text of its spec.
func (g *Stage) Spec(ctx context.Context) (string, error) {
	is, err := g.specified(ctx)
	if err != nil || !is.Specified() {
		return "", err
	}
	return is.Spec.String(), nil
}

// Specify gives it its spec.
func (g *Stage) Specify(ctx context.Context, text string) error {
	if err := meta.CheckStage(text); err != nil {
		return err
	}
	_, err := g.job.pool.agree(ctx, &state.SpecifyStage{StageName: g.named(), Spec: text})
	return err
}

// Seal says that no more maps come.
func (g *Stage) Seal(ctx context.Context) error {
	_, err := g.job.pool.agree(ctx, &state.SealStage{StageName: g.named()})
	return err
}

// Reset begins the stage anew, without its maps.
func (g *Stage) Reset(ctx context.Context) error {
	if err := g.job.pool.Know(ctx); err != nil {
		return err
	}
	is, err := g.is()
	if err == nil {
		_, err = g.job.pool.agree(ctx, &state.ResetStage{StageName: g.named(), Generation: is.Generation})
	}
	return err
}

// Remove forgets the stage, with all that it has. When it returns, the name is gone here.
func (g *Stage) Remove(ctx context.Context) error {
	_, err := g.job.pool.agree(ctx, &state.DropStage{StageName: g.named()})
	if err == nil {
		g.job.pool.config.Forget()
	}
	return err
}
