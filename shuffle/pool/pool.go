package pool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/wire"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/merging"
	"rankfs/shuffle/report"
	"rankfs/shuffle/turns"
	"rankfs/shuffle/uses"
)

// A Maker makes files of parts, which may be given up and made again.
type Maker interface {
	Open(ctx context.Context, p *Part) (File, error)
}

// A File is a file whose bytes never change, open until Release.
type File interface {
	io.ReaderAt
	Fd() int
	Release()
}

// A node that has looked at all that was agreed on rests so many times as long before it
// looks again, a blink at least, and no longer than that: what is committed meanwhile it looks
// at once. What could not be done it tries again after a while.
const (
	restTimes = 100
	leastRest = 50 * time.Millisecond
	mostRest  = 5 * time.Second
	retryTime = time.Second
)

// A Pool is this node's part of the shuffle pool. Its methods may be called concurrently.
// What it does is done by types of one job each, which have their own locks. Of two the one
// that is taken first is: local.making before its mu, the budget's dividing before its mu
// and those of shares. Others are held alone.
type Pool struct {
	*agreed
	maker   Maker
	local   *local
	budget  *memory.Budget
	copies  *copies
	peers   peers
	spill   *spill
	uses    *uses.Uses
	tails   tails
	commits *groupcommit.Queue
	columns *columns
	tallies *tallies
	born    time.Time

	waits    report.Waits
	refusals report.Refusals
}

// New makes a pool. Start begins what it does without being asked.
func New(c Config) *Pool {
	if c.Forget == nil {
		c.Forget = func() {}
	}
	p := &Pool{agreed: &agreed{c}, budget: memory.New(c.RAM, c.Used, c.Log), born: time.Now()}
	p.local = newLocal(p.agreed, p.budget)
	p.copies, p.peers = &copies{local: p.local, losses: newLosses(p.agreed)}, newPeers(p.agreed)
	p.columns = &columns{agreed: p.agreed, copies: p.copies, peers: p.peers, merges: merging.New(c.RAM, p.local.work)}
	p.spill = &spill{copies: p.copies, moving: make(chan struct{}, 1)}
	p.tallies = &tallies{agreed: p.agreed, refusals: &p.refusals}
	p.uses = uses.New(c.State, c.Cluster, agreeTime, c.Log)
	p.tails.peers = p.peers
	p.commits = groupcommit.New(c.Cluster, agreeTime)
	return p
}

// Start takes what makes files of parts, and adopts what an earlier daemon left.
func (p *Pool) Start(_ context.Context, m Maker) error {
	p.maker = m
	return p.local.open()
}

// Follow keeps to what the cluster agrees on, until ctx is done. It begins once this node
// knows that: until then nothing is given up.
func (p *Pool) Follow(ctx context.Context) {
	var tasks sync.WaitGroup
	sweep, known := sweeper{p.local, p.copies.losses, p.born}, false
	defer func() {
		tasks.Wait()
		if p.config.Cluster.Removed() {
			sweep.leave()
		} else if known {
			sweep.sweepJobs() // of one that was removed a moment ago no mount stays
		}
	}()
	tasks.Go(func() { p.budget.Account(ctx) })
	tasks.Go(func() { p.forgetNames(ctx) })
	if p.local.disk != nil {
		tasks.Go(func() { p.spill.follow(ctx) })
	}
	for p.config.Cluster.Ready(ctx) != nil {
		if !sleep(ctx, time.Second) {
			return
		}
	}
	known = true
	p.uses.Adopt()
	p.local.adoptDisk()
	tasks.Go(func() { p.copies.inspectAll(ctx) })
	tasks.Go(func() { p.settle(ctx) })
	repair := repairer{p.copies, p.peers, make(map[string]refused)}
	tasks.Go(func() { p.afterChanges(ctx, sweep.sweep, func() { sweep.sweepJobs() }) })
	for _, task := range []func(context.Context) (again bool){repair.repair, p.tallies.look} {
		tasks.Go(func() { p.afterChanges(ctx, task, nil) })
	}
	p.uses.Follow(ctx)
}

// forgetNames has the kernel forget names that are gone, until ctx is done.
func (p *Pool) forgetNames(ctx context.Context) {
	for {
		changed := p.config.State.ClusterChanged()
		p.config.Forget()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// afterChanges does a task, once more when something has changed, and once more when it
// says that something is left to be done. What is done soon is done while that rests, too.
func (p *Pool) afterChanges(ctx context.Context, task func(context.Context) (again bool), soon func()) {
	for {
		changed, begin := p.config.State.Changed(), time.Now()
		again := task(ctx)
		rest := min(max(restTimes*time.Since(begin), leastRest), mostRest)
		if again {
			rest = max(rest, retryTime)
		}
		if !p.rest(ctx, rest, soon) {
			return
		}
		if again {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// rest sleeps, and does what is done soon after each change, unless it has just been done.
func (p *Pool) rest(ctx context.Context, d time.Duration, soon func()) bool {
	if soon == nil || d <= leastRest {
		return sleep(ctx, d)
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for sleep(ctx, leastRest) {
		changed := p.config.State.Changed()
		soon()
		select {
		case <-changed:
		case <-over.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// Close gives back what the daemon has open. The files stay.
func (p *Pool) Close() error {
	p.tails.stopAll()
	p.commits.Close()
	return p.local.close()
}

// Calls answers other nodes.
func (p *Pool) Calls() (wire.Calls, wire.Pushes) {
	return server{p.copies, turns.NewRepairs(), p.peers.packing}.calls()
}

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
	return &Job{p, *r.Job}, nil
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
