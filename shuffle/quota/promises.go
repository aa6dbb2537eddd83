package quota

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"

	"rankfs/meta"
	"rankfs/meta/state"
)

// State is what this node knows of jobs.
type State interface {
	PoolJob(name string) (state.PoolJob, bool)
	PoolLeft(job string) int64 // of its quota
}

// Cluster is asked for what is reserved, and told what is freed.
type Cluster interface {
	Self() string
	// Know waits until this node knows what the cluster knows.
	Know(ctx context.Context) error
	// Reserve has the cluster reserve something. After an error it may not be known whether it has.
	Reserve(ctx context.Context, c *state.ReserveQuota) (unknown bool, err error)
}

// A Job is one of the pool, as it was when it was looked up.
type Job struct {
	Name   string
	Number uint64
}

// A File has so many bytes, all copies counted, of which an earlier daemon may have reserved some.
type File struct {
	Name  string
	Bytes int64
}

// Promises are the bytes reserved of a job's quota for files of attempts on this node, in all
// copies, by their names, before they are committed. The cluster knows the sum, so that no other
// node has it. A file that is gone needs nothing more: it was removed, or what it needs is its map's.
//
// The lock guards the sums, and the cluster is asked without it, by one goroutine at a time:
// what was refused must not be in what is asked for next.
type Promises struct {
	state    State
	cluster  Cluster
	dir      *os.Root // of the files
	attempts func() ([]File, error)
	asking   chan struct{} // has room for one

	mu struct {
		sync.Mutex
		of           map[string]int64
		asked, freed int64 // ever
		told         int64 // what the cluster knows to be freed
		known        bool  // what an earlier daemon has reserved
	}
}

// New has promised nothing. attempts are the files that are here of attempts.
func New(s State, c Cluster, dir *os.Root, attempts func() ([]File, error)) *Promises {
	return &Promises{state: s, cluster: c, dir: dir, attempts: attempts, asking: make(chan struct{}, 1)}
}

// MayGrow says why files that are to have so many copies must not have so many more bytes, if so:
// with all copies the job would have more than its quota.
func (p *Promises) MayGrow(j Job, bytes int64, copies int) error {
	is, err := p.now(j)
	if err != nil || is.Quota == 0 {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetGone()
	left := p.state.PoolLeft(j.Name) + p.mu.freed - p.mu.told
	if bytes > left/int64(max(1, copies)) {
		return meta.Worded(meta.ErrQuota, "job %s has %d bytes left of a quota of %d, all copies and what is reserved counted; remove stages, or give it a larger quota: rankfs shuffle quota %[1]s SIZE",
			j.Name, max(0, left), is.Quota)
	}
	return nil
}

// now is the job as it is now.
func (p *Promises) now(j Job) (state.PoolJob, error) {
	is, ok := p.state.PoolJob(j.Name)
	if !ok || is.Number != j.Number {
		return is, fmt.Errorf("job %s of the shuffle pool %w", j.Name, meta.ErrNotExist)
	}
	return is, nil
}

// Reserve has a file count as one of so many bytes, all copies counted, if it does not yet.
func (p *Promises) Reserve(ctx context.Context, j Job, name string, bytes int64) (undo func(), err error) {
	is, err := p.now(j)
	if err != nil || is.Quota == 0 {
		return func() {}, err
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, cmp.Or(ctx.Err(), context.Canceled)
	}
	if err := p.adopt(ctx, j); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.forgetGone()
	had := p.mu.of[name]
	more := max(0, bytes-had)
	p.mu.asked += more
	asked, freed := p.mu.asked, p.mu.freed
	p.mu.Unlock()
	unknown := false
	if more > 0 {
		unknown, err = p.tell(ctx, j, asked, freed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
	case unknown:
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
func (p *Promises) tell(ctx context.Context, j Job, asked, freed int64) (unknown bool, err error) {
	unknown, err = p.cluster.Reserve(ctx, &state.ReserveQuota{Node: p.cluster.Self(), Name: j.Name, Number: j.Number, Asked: asked, Freed: freed})
	if err != nil {
		return unknown, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.told = max(p.mu.told, freed)
	return false, nil
}

// adopt goes on from what an earlier daemon has reserved: the attempts that are here have that, and
// the rest is free.
func (p *Promises) adopt(ctx context.Context, j Job) error {
	p.mu.Lock()
	known := p.mu.known
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := p.cluster.Know(ctx); err != nil {
		return err
	}
	is, err := p.now(j)
	if err != nil {
		return err
	}
	files, err := p.attempts()
	if err != nil {
		return err
	}
	has := is.Reserved[p.cluster.Self()]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.known, p.mu.of = true, make(map[string]int64)
	p.mu.asked, p.mu.freed, p.mu.told = has.Asked, has.Freed, has.Freed
	left := has.Bytes
	for _, f := range files {
		n := min(left, f.Bytes)
		p.mu.of[f.Name] = n
		left -= n
	}
	p.mu.freed += left
	return nil
}

// forgetGone frees what files had that are gone. The lock is held.
func (p *Promises) forgetGone() {
	for name, bytes := range p.mu.of {
		if _, err := p.dir.Lstat(name); err != nil {
			delete(p.mu.of, name)
			p.mu.freed += bytes
		}
	}
}

// Spent says that a file needs nothing more: so much of what it had is its map's now.
func (p *Promises) Spent(name string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.freed += max(0, p.mu.of[name]-bytes)
	delete(p.mu.of, name)
}

// TellFreed tells the cluster what is freed.
func (p *Promises) TellFreed(ctx context.Context, j Job) error {
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	default:
		return nil // with what is asked for it is told, too
	}
	if err := p.adopt(ctx, j); err != nil {
		return err
	}
	p.mu.Lock()
	p.forgetGone()
	asked, freed, told := p.mu.asked, p.mu.freed, p.mu.told
	p.mu.Unlock()
	if freed == told {
		return nil
	}
	_, err := p.tell(ctx, j, asked, freed)
	return err
}
