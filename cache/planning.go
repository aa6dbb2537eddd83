package cache

import (
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
	moves   moves
	opens   uint64 // when that was decided
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
	s := strategy{name: name}
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
	c.mu.strategy = s
	c.planSoon()
	return nil
}

// Pin keeps all batches whose key names a plan from going below a level, as long
// as the budgets allow, those too that are read once; the level of the source
// ends that.
func (c *Cache) Pin(plan [16]byte, at policy.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at == policy.Source {
		delete(c.mu.pins, plan)
	} else {
		c.mu.pins[plan] = at
	}
	for id := range c.mu.shelf.all() {
		if k := c.mu.shelf.at(id); k.key.Plan == plan && !k.packed && c.passes(&k) != c.mu.shelf.isSpent(id) {
			c.lay(c.mu.shelf.take(id))
		}
	}
	c.planSoon()
}

// planSoon says that what was planned is no longer right.
func (c *Cache) planSoon() {
	select {
	case c.replan <- struct{}{}:
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
func (c *Cache) keepPlanning() {
	pause := planEvery
	for {
		timer := time.NewTimer(pause)
		forced := false
		select {
		case <-c.ctx.Done():
			timer.Stop()
			return
		case <-c.replan:
			timer.Stop()
			forced = true
		case <-timer.C:
		}
		start := time.Now()
		if c.plan(forced) {
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
func (c *Cache) plan(forced bool) bool {
	c.mu.Lock()
	if !forced && c.mu.opens == c.mu.count.opens {
		c.mu.Unlock()
		c.drawn = policy.Problem{}
		return false
	}
	c.mu.opens = c.mu.count.opens
	c.mu.Unlock()
	took := onThread(c.draft)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.count.plans++
	c.mu.count.planTime += took
	return true
}

// draft makes a plan and follows it from then on.
func (c *Cache) draft() {
	disk := int64(0)
	if c.nvme != nil {
		disk = c.nvme.Room()
	}
	strategy, o := c.glance(disk)
	o.foresee()
	levels := make([]policy.Level, len(o.problem.Items))
	strategy.drafter.Plan(&o.problem, levels)
	c.drawn = o.problem
	c.adopt(strategy, o, levels)
}

// adopt makes a plan that of the cache, unless the policy was changed meanwhile.
func (c *Cache) adopt(s strategy, o *outlook, levels []policy.Level) {
	rises := o.rising(levels)
	c.mu.Lock()
	current := c.mu.planner == s.planner
	if current {
		c.mu.planner, c.mu.drafter = s.drafter, s.planner
		c.mu.targets, c.mu.packing = placement{o.index, levels}, o.packing
		c.mu.moves = moves{up: rises, down: c.mu.moves.down[:0]}
		c.restart(time.Now())
	}
	c.mu.Unlock()
	if !current {
		return
	}
	c.reorder()
	c.mover.wake()
}

// target is where the planner wants a batch to be, if it knows of it.
func (c *Cache) target(k Key) (at policy.Level, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.targets.of(k)
}
