package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/memory"
)

// promises are the bytes reserved of a job's quota for files of attempts on this node, in all copies, by
// their names, before they are committed. The cluster knows the sum, so that no other node has
// it. A file that is gone needs nothing more: it was removed, or what it needs is its map's.
//
// The lock guards the sums, and the cluster is asked without it, by one goroutine at a time:
// what was refused must not be in what is asked for next.
type promises struct {
	asking chan struct{} // has room for one

	mu struct {
		sync.Mutex
		of           map[string]int64
		asked, freed int64 // ever
		told         int64 // what the cluster knows to be freed
		known        bool  // what an earlier daemon has reserved
	}
}

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
	is, err := j.now()
	if err != nil || is.Quota == 0 {
		return err
	}
	f.promised.mu.Lock()
	defer f.promised.mu.Unlock()
	f.forgetGone()
	left := j.pool.config.State.PoolLeft(j.is.Name) + f.promised.mu.freed - f.promised.mu.told
	if bytes > left/int64(max(1, j.pool.wanted(spec))) {
		return meta.Worded(meta.ErrQuota, "job %s has %d bytes left of a quota of %d, all copies and what is reserved counted; remove stages, or give it a larger quota: rankfs shuffle quota %[1]s SIZE",
			j.is.Name, max(0, left), is.Quota)
	}
	return nil
}

// now is the job as it is now.
func (j *Job) now() (state.PoolJob, error) {
	is, ok := j.pool.config.State.PoolJob(j.is.Name)
	if !ok || is.Number != j.is.Number {
		return is, fmt.Errorf("job %s of the shuffle pool %w", j.is.Name, meta.ErrNotExist)
	}
	return is, nil
}

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
	return f.reserve(ctx, g.job, path.Join(mapfiles.StageDir(g.number), attemptsDir, name), bytes*int64(max(1, g.job.pool.wanted(is.Spec))))
}

// reserve has a file count as one of so many bytes, all copies counted, if it does not yet.
func (f *files) reserve(ctx context.Context, j *Job, name string, bytes int64) (undo func(), err error) {
	is, err := j.now()
	if err != nil || is.Quota == 0 {
		return func() {}, err
	}
	p := &f.promised
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, cause(ctx)
	}
	if err := f.adoptReserved(ctx, j); err != nil {
		return nil, err
	}
	p.mu.Lock()
	f.forgetGone()
	had := p.mu.of[name]
	more := max(0, bytes-had)
	p.mu.asked += more
	asked, freed := p.mu.asked, p.mu.freed
	p.mu.Unlock()
	if more > 0 {
		err = f.tell(ctx, j, asked, freed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(groupcommit.Unknown(err), groupcommit.ErrUnknown):
		p.mu.freed += more
		return nil, err
	default:
		p.mu.asked -= more
		return nil, err
	}
	p.mu.of[name] = had + more
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.mu.of[name] >= more {
			p.mu.of[name] -= more
			p.mu.freed += more
		}
	}, nil
}

// tell tells the cluster what was asked for and freed.
func (f *files) tell(ctx context.Context, j *Job, asked, freed int64) error {
	_, err := j.pool.agree(ctx, &state.ReserveQuota{
		Node: j.pool.config.Cluster.Self(), Name: j.is.Name, Number: j.is.Number, Asked: asked, Freed: freed,
	})
	if err != nil {
		return err
	}
	f.promised.mu.Lock()
	defer f.promised.mu.Unlock()
	f.promised.mu.told = max(f.promised.mu.told, freed)
	return nil
}

// adoptReserved goes on from what an earlier daemon has reserved: the attempts that are here
// have that, and the rest is free.
func (f *files) adoptReserved(ctx context.Context, j *Job) error {
	p := &f.promised
	p.mu.Lock()
	known := p.mu.known
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := j.pool.Know(ctx); err != nil {
		return err
	}
	is, err := j.now()
	if err != nil {
		return err
	}
	has := is.Reserved[j.pool.config.Cluster.Self()]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.known, p.mu.of = true, make(map[string]int64)
	p.mu.asked, p.mu.freed, p.mu.told = has.Asked, has.Freed, has.Freed
	left := has.Bytes
	for _, g := range j.pool.config.State.Stages(j.is.Number) {
		names, err := f.attemptNames(g.Number)
		if err != nil {
			return err
		}
		for _, name := range names {
			name = path.Join(mapfiles.StageDir(g.Number), attemptsDir, name)
			info, err := f.root.Lstat(name)
			if err != nil {
				continue
			}
			n := min(left, allocated(info)*int64(max(1, j.pool.wanted(g.Spec))))
			p.mu.of[name] = n
			left -= n
		}
	}
	p.mu.freed += left
	return nil
}

// forgetGone frees what files had that are gone. The lock of the promises is held.
func (f *files) forgetGone() {
	p := &f.promised
	for name, bytes := range p.mu.of {
		if _, err := f.root.Lstat(name); err != nil {
			delete(p.mu.of, name)
			p.mu.freed += bytes
		}
	}
}

// spent says that a file needs nothing more: so much of what it had is its map's now.
func (f *files) spent(name string, bytes int64) {
	p := &f.promised
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.freed += max(0, p.mu.of[name]-bytes)
	delete(p.mu.of, name)
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
				err = f.settle(ctx, j)
			}
			if err != nil && ctx.Err() == nil {
				p.config.Log.Debug("what attempts have reserved of a quota stays reserved for now", "job", is.Name, "cause", err)
			}
		}
	}
}

func (f *files) settle(ctx context.Context, j *Job) error {
	p := &f.promised
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	default:
		return nil // with what is asked for it is told, too
	}
	if err := f.adoptReserved(ctx, j); err != nil {
		return err
	}
	p.mu.Lock()
	f.forgetGone()
	asked, freed, told := p.mu.asked, p.mu.freed, p.mu.told
	p.mu.Unlock()
	if freed == told {
		return nil
	}
	return f.tell(ctx, j, asked, freed)
}

// allocated is the room of a file, with the memory that it has beyond its end.
func allocated(info os.FileInfo) int64 {
	has := info.Sys().(*syscall.Stat_t).Blocks * 512
	if has-info.Size() < memory.Page() {
		return info.Size()
	}
	return has
}
