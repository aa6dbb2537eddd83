package cache

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/policy"
)

// planning is the goroutine that asks the planner now and then where batches should
// be. It takes the cache's lock to survey what is here, a few batches at a time, and
// to adopt a plan, not while one is made.
type planning struct {
	*tiers
	mu     *guarded
	mover  *mover
	ctx    context.Context
	replan chan struct{}  // one token: the last plan is out of date
	drawn  policy.Problem // the last problem, whose memory the next one reuses; of this goroutine alone
}

// soon asks for a new plan: the last one is out of date.
func (pl *planning) soon() {
	select {
	case pl.replan <- struct{}{}:
	default:
	}
}

const (
	// planEvery is the least time between two plans. What happens between them
	// is decided by what things are worth.
	planEvery = time.Second
	// planShare is the part of a processor that planning may take, inverted.
	planShare = 100
)

// keepPlanning makes a plan now and then, if there is anything new.
func (pl *planning) keepPlanning() {
	pause := planEvery
	for {
		timer := time.NewTimer(pause)
		forced := false
		select {
		case <-pl.ctx.Done():
			timer.Stop()
			return
		case <-pl.replan:
			timer.Stop()
			forced = true
		case <-timer.C:
		}
		start := time.Now()
		if pl.plan(forced) {
			pause = max(planEvery, planShare*time.Since(start))
		}
	}
}

// onThread measures the processor's time that f takes, which starts no goroutine.
func onThread(f func()) (took time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
			panic(err) // there is no kernel without it
		}
		return time.Duration(t.Nano())
	}
	start := clock()
	f()
	return clock() - start
}

// plan asks the planner where everything should be, if something was opened
// since it was asked last.
func (pl *planning) plan(forced bool) bool {
	pl.mu.Lock()
	if !forced && pl.mu.strategy.opens == pl.mu.count.opens {
		pl.mu.Unlock()
		pl.drawn = policy.Problem{}
		return false
	}
	pl.mu.strategy.opens = pl.mu.count.opens
	pl.mu.Unlock()
	took := onThread(pl.draft)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.mu.count.plans++
	pl.mu.count.planTime += took
	return true
}

// draft makes a plan and has the cache follow it from then on.
func (pl *planning) draft() {
	disk := int64(0)
	if pl.nvme != nil {
		disk = pl.nvme.Room()
	}
	strategy, o := pl.survey(disk)
	o.addFuture()
	levels := make([]policy.Level, len(o.problem.Items))
	strategy.drafter.Plan(&o.problem, levels)
	pl.drawn = o.problem
	pl.adopt(strategy, o, levels)
}

// adopt makes a plan that of the cache, unless the policy was changed meanwhile.
func (pl *planning) adopt(s strategy, o *outlook, levels []policy.Level) {
	up := o.promotions(levels)
	pl.mu.Lock()
	current := pl.mu.strategy.planner == s.planner
	if current {
		pl.mu.strategy.planner, pl.mu.strategy.drafter = s.drafter, s.planner
		pl.mu.strategy.targets, pl.mu.strategy.packing = placement{o.index, levels}, o.packing
		pl.mu.moves = moves{up: up, down: pl.mu.moves.down[:0]}
		pl.mu.readers.restart(time.Now())
	}
	pl.mu.Unlock()
	if !current {
		return
	}
	pl.reorder()
	pl.mover.wake()
}

// reorder puts what is idle in the order of the new plan, and notes what is misplaced
// by it. Until it is done a lane is in the order of before and of now, which differ by
// how much readers went off course.
func (pl *planning) reorder() {
	pl.mu.walk(func(id uint32) bool {
		idle, eviction := pl.mu.slabs.idle, &pl.mu.eviction
		if idle.isSpent(id) {
			return true
		}
		b := idle.at(id)
		if eviction.misplaced(&b) {
			pl.mu.moves.down = append(pl.mu.moves.down, id)
		}
		idle.rank(id, eviction.place(&b))
		return true
	})
}
