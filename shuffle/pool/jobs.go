package pool

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
)

// Jobs are the names of all jobs.
func (p *Pool) Jobs(ctx context.Context) (names []string, err error) {
	if err := p.Know(ctx); err != nil {
		return nil, err
	}
	for _, j := range p.config.State.PoolJobs() {
		names = append(names, j.Name)
	}
	return names, nil
}

// Job is the job of that name.
func (p *Pool) Job(ctx context.Context, name string) (*Job, error) {
	j, ok := p.config.State.PoolJob(name)
	if !ok {
		if err := p.Know(ctx); err != nil {
			return nil, err
		}
		if j, ok = p.config.State.PoolJob(name); !ok {
			return nil, fmt.Errorf("job %s of the shuffle pool %w", name, meta.ErrNotExist)
		}
	}
	return &Job{p, j}, nil
}

// MakeJob makes a job for a user, whose maps may have quota bytes in all their copies;
// with zero any.
func (p *Pool) MakeJob(ctx context.Context, name string, uid, gid uint32, quota int64) (*Job, error) {
	r, err := p.agree(ctx, &state.MakeJob{Node: p.config.Cluster.Self(), Name: name, UID: uid, GID: gid, Nonce: rand.Uint64(), Quota: quota})
	if err != nil {
		return nil, err
	}
	return &Job{p, *r.Job()}, nil
}

// RemoveJob forgets a job in which there is nothing: no stage, no blob, and no file that only
// this node has.
func (p *Pool) RemoveJob(ctx context.Context, name string) error {
	j, err := p.Job(ctx, name)
	if err != nil {
		return err
	}
	if err := p.Know(ctx); err != nil {
		return err
	}
	for _, g := range p.config.State.Stages(j.is.Number) {
		if !g.Blobs() || len(p.config.State.Blobs(g.Number, "")) > 0 {
			return unix.ENOTEMPTY
		}
	}
	if f := p.local.has(j.is.Number); f != nil {
		if has, err := f.hasOwn(); err != nil || has {
			return cmp.Or[error](err, unix.ENOTEMPTY)
		}
	}
	_, err = p.agree(ctx, &state.DropJob{Name: j.is.Name, Number: j.is.Number, Empty: true})
	return notEmpty(err)
}
