package cache

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/pack"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// choosing is the goroutine that asks the policy now and then where batches should
// be. It takes the cache's lock to survey what is here, a few batches at a time, and
// to adopt a choice, not while one is made.
type choosing struct {
	*tiers
	mu     *guarded
	mover  *mover
	ctx    context.Context
	stale  chan struct{}  // one token: the last choice is out of date
	learnt chan struct{}  // one token: something is known that it did not know
	drawn  policy.Problem // the last problem, whose memory the next one reuses; of this goroutine alone
}

// soon asks for a new choice: the last one is out of date.
func (ch *choosing) soon() {
	select {
	case ch.stale <- struct{}{}:
	default:
	}
}

const (
	// chooseEvery is the least time between two choices. What happens between them
	// is decided by what things are worth.
	chooseEvery = time.Second
	// chooseShare is the part of a processor that choosing may take, inverted.
	chooseShare = 100
)

// keepChoosing chooses now and then, if there is anything new.
func (ch *choosing) keepChoosing() {
	least := time.Duration(0) // between choices, for chooseShare
	for {
		forced, ok := ch.await(least)
		if !ok {
			return
		}
		start := time.Now()
		if ch.choose(forced) {
			least = chooseShare * time.Since(start)
		}
	}
}

// await waits until a choice is to be made: at once, if the last one is out of date. What
// is learnt is not left to wait for chooseEvery: until a dataset is known to be worth
// packing, nothing of it is packed that memory gives up.
func (ch *choosing) await(least time.Duration) (forced, ok bool) {
	began := time.Now()
	timer := time.NewTimer(max(chooseEvery, least))
	defer timer.Stop()
	for {
		select {
		case <-ch.ctx.Done():
			return false, false
		case <-ch.stale:
			return true, true
		case <-ch.learnt:
			timer.Reset(max(0, least-time.Since(began)))
		case <-timer.C:
			return false, true
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

// choose asks the policy where everything should be, if something was opened
// since it was asked last.
func (ch *choosing) choose(forced bool) bool {
	ch.mu.Lock()
	if !forced && ch.mu.strategy.opens == ch.mu.count.Opens {
		ch.mu.Unlock()
		ch.drawn = policy.Problem{}
		return false
	}
	ch.mu.strategy.opens = ch.mu.count.Opens
	ch.mu.Unlock()
	took := onThread(ch.draft)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.mu.count.Choices++
	ch.mu.count.ChoiceTime += took
	return true
}

// draft makes a choice and has the cache follow it from then on.
func (ch *choosing) draft() {
	disk := int64(0)
	if ch.nvme != nil {
		disk = ch.nvme.Room()
	}
	strategy, o := ch.survey(disk)
	o.addFuture()
	o.keepPassing()
	levels := make([]policy.Level, len(o.problem.Items))
	strategy.drafter.Choose(&o.problem, levels)
	ch.drawn = o.problem
	ch.adopt(strategy, o, levels)
}

// survey begins an outlook with the batches that are here, if slabs may take so much
// of the disks.
func (ch *choosing) survey(disk int64) (strategy, *outlook) {
	o := &outlook{
		tiers: ch.tiers, time: ch.mu.time, readers: &ch.mu.readers, now: time.Now(), index: make(map[Key]int32, len(ch.drawn.Items)), pins: make(map[[16]byte]policy.Level),
		sets: make(map[[16]byte]int32), packing: make(map[[16]byte]pack.Measure), groups: make(map[[16]byte]int32),
	}
	s := ch.surveyReaders(o, disk)
	ch.mu.walk(func(id uint32) bool {
		if k := ch.mu.slabs.idle.at(id); k.packed || !ch.mu.eviction.readOnce(&k) && !ch.mu.slabs.isPacked(k.key) {
			o.addPresent(&k)
		}
		return !o.full()
	})
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for _, e := range ch.mu.slabs.entries {
		if e.state == ready && !ch.mu.eviction.readOnce(&e.batch) && !ch.mu.slabs.isPacked(e.key) {
			o.addPresent(&e.batch)
		}
	}
	return s, o
}

// surveyReaders notes for an outlook what readers do and what things cost.
func (ch *choosing) surveyReaders(o *outlook, disk int64) strategy {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	o.rates, o.writes = ch.mu.rates.from, ch.mu.rates.writes
	o.problem.Items, o.problem.Uses = ch.drawn.Items[:0], ch.drawn.Uses[:0]
	o.problem.Now = ch.mu.time.seconds(o.now)
	o.problem.Memory = ch.ram.budget.Load()
	o.problem.Disk = disk
	for id, at := range ch.mu.strategy.pins {
		o.pins[id] = at
	}
	jobs := int32(0)
	for _, ep := range ch.mu.readers.epochs {
		jobs++
		for r := range ep.all() {
			if r.Run >= trusted && !ch.mu.readers.traces.predicts(ep.series, r.rank) {
				o.courses = append(o.courses, bound{ep.series, ep.next, *r, jobs, len(ep.readers) > 1})
			}
			o.ahead += int64(ch.mu.readers.window(r)+2) * meta.WholePages(r.size)
		}
	}
	return ch.mu.strategy
}

// adopt makes a choice that of the cache, unless the policy was changed meanwhile.
func (ch *choosing) adopt(s strategy, o *outlook, levels []policy.Level) {
	up := o.promotions(levels)
	ch.mu.Lock()
	current := ch.mu.strategy.policy == s.policy
	if current {
		ch.mu.strategy.policy, ch.mu.strategy.drafter = s.drafter, s.policy
		ch.mu.strategy.targets, ch.mu.strategy.packing = placement{o.index, levels}, o.packing
		ch.mu.moves.renew(up)
		ch.mu.readers.restart(time.Now())
	}
	ch.mu.Unlock()
	if !current {
		return
	}
	ch.reorder()
	ch.mover.wake()
}

// reorder puts what is idle in the order of the new choice, and notes what is misplaced
// by it. Until it is done a heap is in the order of before and of now, which differ by
// how much readers went off course.
func (ch *choosing) reorder() {
	ch.mu.walk(func(id uint32) bool {
		idle, eviction := ch.mu.slabs.idle, &ch.mu.eviction
		b := idle.at(id)
		if eviction.misplaced(&b) {
			ch.mu.moves.down = append(ch.mu.moves.down, id)
		}
		idle.rank(id, eviction.place(&b, time.Now()))
		return true
	})
}
