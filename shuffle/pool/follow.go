package pool

import (
	"context"
	"sync"
	"time"
)

// Follow keeps to what the cluster agrees on, until ctx is done. It begins once this node
// knows that: until then nothing is given up.
func (p *Pool) Follow(ctx context.Context) {
	var tasks sync.WaitGroup
	sweep, known := sweeper{p.local, p.copies.losses, p.born}, false
	defer func() {
		tasks.Wait()
		if p.config.Member.Removed() {
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
	for p.config.Member.Ready(ctx) != nil {
		if !sleep(ctx, time.Second) {
			return
		}
	}
	known = true
	p.uses.Adopt()
	p.local.adoptDisk()
	tasks.Go(func() { p.copies.inspectAll(ctx) })
	tasks.Go(func() { p.local.tellFreed(ctx) })
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

// A node that has looked at all that was agreed on rests so many times as long before it
// looks again, a blink at least, and no longer than that: what is committed meanwhile it looks
// at once. What could not be done it tries again after a while.
const (
	restTimes = 100
	minRest   = 50 * time.Millisecond
	maxRest   = 5 * time.Second
	retryTime = time.Second
)

// afterChanges does a task, once more when something has changed, and once more when it
// says that something is left to be done. What is done soon is done while that rests, too.
func (p *Pool) afterChanges(ctx context.Context, task func(context.Context) (again bool), soon func()) {
	for {
		changed, begin := p.config.State.Changed(), time.Now()
		again := task(ctx)
		rest := min(max(restTimes*time.Since(begin), minRest), maxRest)
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
	if soon == nil || d <= minRest {
		return sleep(ctx, d)
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for sleep(ctx, minRest) {
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
