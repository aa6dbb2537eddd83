package pool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A Job is one job of the pool, as it was when it was looked up.
type Job struct {
	pool *Pool
	is   state.PoolJob
}

// Number is the job's, which no other had or will have.
func (j *Job) Number() uint64 { return j.is.Number }

// Stands reports whether the cluster has the job still, as far as this node knows.
func (j *Job) Stands() bool {
	is, ok := j.pool.config.State.PoolJob(j.is.Name)
	return ok && is.Number == j.is.Number
}

// Owner is the user that made it.
func (j *Job) Owner() (uid, gid uint32) { return j.is.UID, j.is.GID }

// Files is the root of its files on this node.
func (j *Job) Files() (*os.Root, error) {
	f, err := j.files()
	if err != nil {
		return nil, err
	}
	f.Enter()()
	return f.root, nil
}

func (j *Job) files() (*files, error) { return j.pool.local.files(j.is) }

// Use says that something of the job is open until done is called.
func (j *Job) Use(hold bool) (done func()) { return j.pool.uses.Add(j.is, hold) }

// Write says that something of the job is open to write until done is called.
func (j *Job) Write() (done func()) {
	used := j.Use(false)
	f, err := j.files()
	if err != nil {
		return used
	}
	left := f.Enter()
	return func() {
		left()
		used()
	}
}

// Stages are the names of its stages.
func (j *Job) Stages(ctx context.Context) (names []string, err error) {
	if err := j.pool.Know(ctx); err != nil {
		return nil, err
	}
	for _, g := range j.pool.config.State.Stages(j.is.Number) {
		names = append(names, g.Name)
	}
	return names, nil
}

// Stage is the stage of that name.
func (j *Job) Stage(ctx context.Context, name string) (*Stage, error) {
	g, ok := j.pool.config.State.Stage(j.is.Number, name)
	if !ok {
		if err := j.pool.Know(ctx); err != nil {
			return nil, err
		}
		if g, ok = j.pool.config.State.Stage(j.is.Number, name); !ok {
			return nil, fmt.Errorf("stage %s of job %s %w", name, j.is.Name, meta.ErrNotExist)
		}
	}
	return j.stage(g), nil
}

func (j *Job) stage(g state.PoolStage) *Stage {
	return &Stage{stageHere{stage{j.pool.agreed, j.is, g.Name, g.Number}, j.pool}}
}

// Fixed reports whether every job has a file or directory of that name.
func Fixed(name string) bool { return name == scratchDir || name == holdFile || name == meta.BlobDir }

// MakeStage makes a stage.
func (j *Job) MakeStage(ctx context.Context, name string) (*Stage, error) {
	r, err := j.pool.agree(ctx, &state.MakeStage{Job: j.is.Name, Number: j.is.Number, Name: name, Nonce: rand.Uint64()})
	if err != nil {
		return nil, err
	}
	return j.stage(*r.Stage()), nil
}

// SetQuota changes how many bytes its maps may have in all their copies; with zero any.
func (j *Job) SetQuota(ctx context.Context, quota int64) error {
	_, err := j.pool.agree(ctx, &state.SetQuota{Name: j.is.Name, Number: j.is.Number, Quota: quota})
	return err
}

// Remove forgets the job, with all that it has. When it returns, the name is gone here.
func (j *Job) Remove(ctx context.Context) error {
	_, err := j.pool.agree(ctx, &state.DropJob{Name: j.is.Name, Number: j.is.Number})
	if err == nil {
		j.pool.config.Forget()
	}
	return err
}

// RemoveStage forgets a stage that has no map, and no attempt on this node.
func (j *Job) RemoveStage(ctx context.Context, name string) error {
	g, err := j.Stage(ctx, name)
	if err != nil {
		return err
	}
	numbers, err := g.Maps().List(ctx)
	if err != nil {
		return err
	}
	f, err := j.files()
	if err != nil {
		return err
	}
	attempts, err := f.attemptNames(g.number)
	if err != nil {
		return err
	}
	if len(numbers) > 0 || len(attempts) > 0 {
		return unix.ENOTEMPTY
	}
	_, err = j.pool.agree(ctx, &state.DropStage{StageName: g.named(), Empty: true})
	return notEmpty(err)
}
