package pool

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// linger is how long a job counts as used after the last close of anything in it: a job
// that opens one file after the other is not told of each.
const linger = 5 * time.Second

// uses knows which jobs have something open on this node, and tells the cluster. The lock
// guards each use too; the cluster is told without it.
type uses struct {
	*agreed
	changed chan struct{}

	mu struct {
		sync.Mutex
		jobs map[uint64]*use
	}
}

// A use counts the open files of a job, and notes what the cluster knows of it.
type use struct {
	job   state.PoolJob
	open  int
	hold  bool      // the file hold is or was open
	ended time.Time // the last close
	told  bool      // the cluster knows that it is in use
	held  bool      // and that it is held
}

func (u *uses) init(a *agreed) {
	u.agreed, u.changed = a, make(chan struct{}, 1)
	u.mu.jobs = make(map[uint64]*use)
}

// adopt takes over what an earlier daemon of this node said: of that nothing is open.
func (u *uses) adopt(jobs []state.PoolJob, self string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, j := range jobs {
		if _, ok := j.Users[self]; ok && u.mu.jobs[j.Number] == nil {
			u.mu.jobs[j.Number] = &use{job: j, told: true, held: j.Held, ended: time.Now()}
		}
	}
}

func (u *uses) add(j state.PoolJob, hold bool) (done func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.mu.jobs[j.Number]
	if one == nil {
		one = &use{job: j}
		u.mu.jobs[j.Number] = one
	}
	one.open++
	one.hold = one.hold || hold
	if !one.told || one.hold != one.held {
		select {
		case u.changed <- struct{}{}:
		default:
		}
	}
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if one.open--; one.open == 0 {
			one.ended = time.Now()
		}
	})
}

// follow tells the cluster which jobs are in use, and which have not been for long, until
// ctx is done.
func (u *uses) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	idle := make(idleJobs)
	for {
		u.report(ctx)
		idle.look(u.config.State.PoolJobs(), time.Now())
		for _, j := range idle.over(time.Now()) {
			_, err := u.agree(ctx, &state.DropJob{Name: j.Name, Number: j.Number, Unused: true, Used: j.Used})
			if err != nil {
				break // until the next time
			}
			u.config.Log.Info("a job of the shuffle pool that nobody used was removed", "job", j.Name, "after", j.Lives())
		}
		select {
		case <-ctx.Done():
			return
		case <-u.changed:
		case <-tick.C:
		}
	}
}

// idleJobs are the jobs that are not used, and of which no dataset is made, and since when this
// node knows that. Clocks of nodes may jump, and what is gone is lost, so the time that a job
// may live unused is measured by each node, from when it sees that; the cluster drops the job
// if it was not used since.
type idleJobs map[uint64]idleJob

type idleJob struct {
	is    state.PoolJob
	since time.Time
}

// look notes which jobs are unused now.
func (i idleJobs) look(jobs []state.PoolJob, now time.Time) {
	before := maps.Clone(i)
	clear(i)
	for _, j := range jobs {
		if _, ends := j.End(); !ends {
			continue
		}
		was, ok := before[j.Number]
		if !ok || was.is.Used != j.Used {
			was.since = now
		}
		i[j.Number] = idleJob{j, was.since}
	}
}

// over are those that have lived long enough.
func (i idleJobs) over(now time.Time) (jobs []state.PoolJob) {
	for _, one := range i {
		if now.Sub(one.since) >= one.is.Lives() {
			jobs = append(jobs, one.is)
		}
	}
	return jobs
}

// report tells the cluster what it does not know yet.
func (u *uses) report(ctx context.Context) {
	u.mu.Lock()
	all := maps.Clone(u.mu.jobs)
	u.mu.Unlock()
	for number, one := range all {
		u.mu.Lock()
		open := one.open > 0 || time.Since(one.ended) < linger
		tell := open != one.told || one.hold && !one.held
		hold := one.hold
		u.mu.Unlock()
		if !tell {
			continue
		}
		_, err := u.agree(ctx, &state.UseJob{
			Node: u.config.Cluster.Self(), Name: one.job.Name, Number: number, Open: open, Hold: hold,
		})
		gone := errors.Is(err, meta.ErrNotExist)
		if err != nil && !gone {
			return // until the next time
		}
		u.mu.Lock()
		one.told, one.held = open, hold
		if one.open == 0 && (gone || !open) {
			delete(u.mu.jobs, number)
		}
		u.mu.Unlock()
	}
}
