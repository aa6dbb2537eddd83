package pool

import (
	"context"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A stageHere is a stage, and this node's part of the pool, which has what is here of it.
type stageHere struct {
	stage
	pool *Pool
}

func (g stageHere) files() (*files, error) { return g.pool.local.files(g.job) }

// A Stage is one stage of a job.
type Stage struct{ stageHere }

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
	_, err := g.agree(ctx, &state.SpecifyStage{StageName: g.named(), Spec: text})
	return err
}

// Seal says that no more maps come.
func (g *Stage) Seal(ctx context.Context) error {
	_, err := g.agree(ctx, &state.SealStage{StageName: g.named()})
	return err
}

// Reset begins the stage anew, without its maps.
func (g *Stage) Reset(ctx context.Context) error {
	if err := g.Know(ctx); err != nil {
		return err
	}
	is, err := g.is()
	if err == nil {
		_, err = g.agree(ctx, &state.ResetStage{StageName: g.named(), Generation: is.Generation})
	}
	return err
}

// Remove forgets the stage, with all that it has. When it returns, the name is gone here.
func (g *Stage) Remove(ctx context.Context) error {
	_, err := g.agree(ctx, &state.DropStage{StageName: g.named()})
	if err == nil {
		g.config.Forget()
	}
	return err
}
