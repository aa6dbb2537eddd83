package pool

import (
	"context"
	"path"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/mapfiles"
)

// MayGrow says why attempts must not have so many more bytes, if so: with all copies the
// job would have more than its quota.
func (g Attempts) MayGrow(bytes int64) error {
	is, err := g.is()
	if err != nil {
		return err
	}
	return g.pool.mayGrow(g.job, bytes, is.Spec)
}

func (p *Pool) mayGrow(j state.PoolJob, bytes int64, spec meta.Stage) error {
	f, err := p.local.files(j)
	if err != nil {
		return err
	}
	return f.promised.MayGrow(ofQuota(j), bytes, p.wanted(spec))
}

// Reserve has a file of an attempt count as one of so many bytes, from before it has them.
// If it does not get them, that is undone.
func (g Attempts) Reserve(ctx context.Context, name string, bytes int64) (undo func(), err error) {
	is, err := g.is()
	if err != nil {
		return nil, err
	}
	f, err := g.files()
	if err != nil {
		return nil, err
	}
	return f.promised.Reserve(ctx, ofQuota(g.job), path.Join(mapfiles.StageDir(g.number), attemptsDir, name), bytes*int64(max(1, g.wanted(is.Spec))))
}

// settleTime is how long what was freed is kept from other nodes.
const settleTime = time.Second

// tellFreed tells the cluster what is freed, again and again until ctx is done.
func (l *local) tellFreed(ctx context.Context) {
	for sleep(ctx, settleTime) {
		for _, j := range l.config.State.PoolJobs() {
			if j.Reserved[l.config.Cluster.Self()].Bytes == 0 {
				continue
			}
			f, err := l.files(j)
			if err == nil {
				err = f.promised.TellFreed(ctx, ofQuota(j))
			}
			if err != nil && ctx.Err() == nil {
				l.config.Log.Debug("what attempts have reserved of a quota stays reserved for now", "job", j.Name, "cause", err)
			}
		}
	}
}
