package uses

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// linger is how long a job counts as used after the last close of anything in it: a job
// that opens one file after the other is not told of each.
const linger = 5 * time.Second

// State has the jobs that there are, as far as this node knows.
type State interface{ PoolJobs() []state.PoolJob }

// Cluster is the cluster, which executes commands, and what this node is there.
type Cluster interface {
	Self() string
	Do(context.Context, state.Command) (state.Result, error)
}

// Uses knows which jobs have something open on this node, and tells the cluster. The lock
// guards each use too; the cluster is told without it.
type Uses struct {
	known   State
	cluster Cluster
	within  time.Duration // the cluster is to answer
	log     *slog.Logger
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

// New is a Uses without any yet. A command waits for the cluster no longer than within.
func New(known State, c Cluster, within time.Duration, log *slog.Logger) *Uses {
	u := &Uses{known: known, cluster: c, within: within, log: log, changed: make(chan struct{}, 1)}
	u.mu.jobs = make(map[uint64]*use)
	return u
}

func (u *Uses) agree(ctx context.Context, c state.Command) error {
	ctx, cancel := context.WithTimeout(ctx, u.within)
	defer cancel()
	_, err := u.cluster.Do(ctx, c)
	return err
}

// Adopt tells the cluster that what an earlier daemon of this node had open is closed.
func (u *Uses) Adopt() {
	self, known := u.cluster.Self(), u.known.PoolJobs()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, j := range known {
		if _, ok := j.Users[self]; ok && u.mu.jobs[j.Number] == nil {
			u.mu.jobs[j.Number] = &use{job: j, told: true, held: j.Held, ended: time.Now()}
		}
	}
}

// Add says that something of a job is open, until done is called; hold that it is the file hold.
func (u *Uses) Add(j state.PoolJob, hold bool) (done func()) {
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

// Follow tells the cluster which jobs are in use, and which have not been for long, until
// ctx is done.
func (u *Uses) Follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	idle := make(idleJobs)
	for {
		u.report(ctx)
		idle.look(u.known.PoolJobs(), time.Now())
		for _, j := range idle.over(time.Now()) {
			err := u.agree(ctx, &state.DropJob{Name: j.Name, Number: j.Number, Unused: true, Used: j.Used})
			if err != nil {
				break // until the next time
			}
			u.log.Info("an unused job of the shuffle pool was removed", "job", j.Name, "after", j.Lives())
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
func (u *Uses) report(ctx context.Context) {
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
		err := u.agree(ctx, &state.UseJob{
			Node: u.cluster.Self(), Name: one.job.Name, Number: number, Open: open, Hold: hold,
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
