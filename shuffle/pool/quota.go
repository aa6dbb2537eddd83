package pool

import (
	"context"
	"path"
	"time"

	"rankfs/meta"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/quota"
)

// MayGrow says why attempts must not have so many more bytes, if so: with all copies the
// job would have more than its quota.
func (g Attempts) MayGrow(bytes int64) error {
	is, err := g.is()
	if err != nil {
		return err
	}
	return g.job.mayGrow(bytes, is.Spec)
}

func (j *Job) mayGrow(bytes int64, spec meta.Stage) error {
	f, err := j.files()
	if err != nil {
		return err
	}
	return f.promised.MayGrow(j.ofQuota(), bytes, j.pool.wanted(spec))
}

func (j *Job) ofQuota() quota.Job { return quota.Job{Name: j.is.Name, Number: j.is.Number} }

// Reserve has a file of an attempt count as one of so many bytes, from before it has them.
// If it does not get them, that is undone.
func (g Attempts) Reserve(ctx context.Context, name string, bytes int64) (undo func(), err error) {
	is, err := g.is()
	if err != nil {
		return nil, err
	}
	f, err := g.job.files()
	if err != nil {
		return nil, err
	}
	return f.promised.Reserve(ctx, g.job.ofQuota(), path.Join(mapfiles.StageDir(g.number), attemptsDir, name), bytes*int64(max(1, g.job.pool.wanted(is.Spec))))
}

// settleTime is how long what was freed is kept from other nodes.
const settleTime = time.Second

// settle tells the cluster what is freed, again and again until ctx is done.
func (p *Pool) settle(ctx context.Context) {
	for sleep(ctx, settleTime) {
		for _, is := range p.config.State.PoolJobs() {
			if is.Reserved[p.config.Cluster.Self()].Bytes == 0 {
				continue
			}
			j := &Job{p, is}
			f, err := j.files()
			if err == nil {
				err = f.promised.Settle(ctx, j.ofQuota())
			}
			if err != nil && ctx.Err() == nil {
				p.config.Log.Debug("what attempts have reserved of a quota stays reserved for now", "job", is.Name, "cause", err)
			}
		}
	}
}
