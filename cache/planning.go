package cache

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
)

// A strategy is who decides what is kept, and what it decided last.
type strategy struct {
	name    string
	planner policy.Planner // says what things are worth
	drafter policy.Planner // makes the next plan meanwhile; then the two change places
	targets placement
	packing map[[16]byte]pack.Measure // how batches are packed, by the plan of their keys; where that pays
	pins    map[[16]byte]policy.Level // by the plan of keys: no batch goes below
	opens   uint64                    // when that was decided
}

// planning is the goroutine that asks the planner now and then where batches should
// be.
type planning struct {
	*tiers
	mu     *guarded
	mover  *mover
	ctx    context.Context
	replan chan struct{}  // one token: what was planned is no longer right
	drawn  policy.Problem // what was planned last, whose memory the next plan takes; of this goroutine alone
}

// A placement is a plan: where each item should be.
type placement struct {
	index  map[Key]int32
	levels []policy.Level
}

// of is where an item should be, if the plan has it.
func (p placement) of(k Key) (at policy.Level, known bool) {
	i, known := p.index[k]
	if !known {
		return at, false
	}
	return p.levels[i], true
}

func newStrategy(name string) (strategy, error) {
	if name == "" {
		name = policy.Names()[0]
	}
	s := strategy{name: name, pins: make(map[[16]byte]policy.Level)}
	var err error
	if s.planner, err = policy.New(name); err != nil {
		return s, err
	}
	s.drafter, err = policy.New(name)
	return s, err
}

// Policy is the name of the planner in use.
func (c *Cache) Policy() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.strategy.name
}

// SetPolicy changes the planner. What it decides takes effect within moments;
// nothing is thrown away before its room is needed.
func (c *Cache) SetPolicy(name string) error {
	s, err := newStrategy(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.pins = c.mu.strategy.pins
	c.mu.strategy, c.mu.moves = s, moves{}
	c.planning.soon()
	return nil
}

// Pin keeps all batches whose key names a plan from going below a level, as long
// as the budgets allow, those too that are read once; the level of the source
// ends that.
func (c *Cache) Pin(plan [16]byte, at policy.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == policy.Source {
		delete(c.mu.strategy.pins, plan)
	} else {
		c.mu.strategy.pins[plan] = at
	}
	for id := range c.mu.slabs.idle.all() {
		if k := c.mu.slabs.idle.at(id); k.key.Plan == plan && !k.packed && c.mu.eviction.passes(&k) != c.mu.slabs.idle.isSpent(id) {
			c.mu.eviction.lay(c.mu.slabs.idle.take(id))
		}
	}
	c.planning.soon()
}

// soon says that what was planned is no longer right.
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

// draft makes a plan and follows it from then on.
func (pl *planning) draft() {
	disk := int64(0)
	if pl.nvme != nil {
		disk = pl.nvme.Room()
	}
	strategy, o := pl.glance(disk)
	o.foresee()
	levels := make([]policy.Level, len(o.problem.Items))
	strategy.drafter.Plan(&o.problem, levels)
	pl.drawn = o.problem
	pl.adopt(strategy, o, levels)
}

// adopt makes a plan that of the cache, unless the policy was changed meanwhile.
func (pl *planning) adopt(s strategy, o *outlook, levels []policy.Level) {
	rises := o.rising(levels)
	pl.mu.Lock()
	current := pl.mu.strategy.planner == s.planner
	if current {
		pl.mu.strategy.planner, pl.mu.strategy.drafter = s.drafter, s.planner
		pl.mu.strategy.targets, pl.mu.strategy.packing = placement{o.index, levels}, o.packing
		pl.mu.moves = moves{up: rises, down: pl.mu.moves.down[:0]}
		pl.mu.readers.restart(time.Now())
	}
	pl.mu.Unlock()
	if !current {
		return
	}
	pl.reorder()
	pl.mover.wake()
}

// target is where the planner wants a batch to be, if it knows of it.
func (st *store) target(k Key) (at policy.Level, known bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.mu.strategy.targets.of(k)
}
