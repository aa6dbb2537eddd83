package cache

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// guarded is all that the cache's one lock guards, in parts with one purpose each.
//
// The parts are plain structs: none locks, waits, logs or moves a byte, and the lock
// is held whenever a method of theirs, or of guarded itself but walk and end, is
// called. Each knows only those above it. What moves bytes (workers, makers,
// admission, choosing, mover, store, descriptors) takes the lock for moments.
//
// The order of locks: mover.moving, this one, then that of a directory of disks, to
// look up whether it has a slab, those of clocks, and those that a series has
// for what it remembers; nothing is waited for under these (see Series). Those of ram,
// packed and the file of slots are taken without.
type guarded struct {
	sync.Mutex
	time     timeline
	rates    rates     // times that fills and writes take
	accounts accounts  // of workers' time
	slabs    slabs     // batches that are here
	readers  readers   // positions of ranks, and the batches that they come to
	strategy strategy  // where batches should be
	eviction eviction  // the next victim
	queue    queue     // the next task of a worker
	room     roomQueue // fills that wait for memory
	moves    moves     // the mover's next batches
	sampled  samples   // what it has tried codecs on
	count    Counts
	limits   limits // of memory
	life     life   // of the cache
}

// limits are what memory may have now.
type limits struct {
	strained bool  // memory is short: nothing is made ready ahead
	allowed  int64 // how much of the budget memory may take
	yielded  int64 // and how much of it others have
}

// A life is how far the end of a cache has come.
type life struct {
	closed bool // no more opens
	ended  bool // and nothing becomes idle any more
}

// Counts are counts since New, and the handles that are open now.
type Counts struct {
	meta.CacheCounts
	Unpacked, Converted uint64
	Late                uint64 // copies that were made when their room was needed, which no open waited for
	FillTime            time.Duration
	ChoiceTime          time.Duration // of a processor
}

// newGuarded is the state of an empty cache.
func newGuarded(config *Config, budget *atomic.Int64) (*guarded, error) {
	g := &guarded{time: timeline{time.Now()}, limits: limits{allowed: config.RAMBytes}, sampled: make(samples)}
	var err error
	if g.strategy, err = newStrategy(config.Policy); err != nil {
		return nil, err
	}
	g.rates.fills = ahead.New(config.Workers)
	g.accounts.others = newJob(&g.accounts.all)
	g.slabs = slabs{entries: make(map[Key]*entry), idle: newIdleTable(g.time.began), stalls: config.Stalls}
	g.readers = readers{
		config: config, budget: budget, slabs: &g.slabs, rates: &g.rates, epochs: make(map[[16]byte]*epoch),
		tenants: tenants{of: make(map[[16]byte]*tenant), accounts: &g.accounts}, traces: traces{of: make(map[tracedKey]*traced)},
	}
	g.eviction = eviction{
		time: g.time, budget: budget, slabs: &g.slabs, readers: &g.readers, strategy: &g.strategy, rates: &g.rates,
	}
	g.queue = queue{
		readers: &g.readers, slabs: &g.slabs, rates: &g.rates, accounts: &g.accounts, time: g.time, demand: make(map[*usage][]*entry),
		workers: config.Workers, wake: sync.NewCond(g),
	}
	g.room = roomQueue{config: config, slabs: &g.slabs, queue: &g.queue, token: make(chan struct{}, 1), opens: make(map[int32]*entry)}
	return g, nil
}

// publish ends a fill that succeeded.
func (g *guarded) publish(e *entry, took time.Duration) {
	e.state = ready
	switch e.from {
	case policy.RAM: // where it was
	case policy.Disk:
		g.count.Restored++
	case policy.Packed:
		g.count.Unpacked++
	default:
		g.count.Fills++
		g.count.FillBytes += uint64(e.size)
		if e.ahead {
			g.count.Prefetched++
		}
		e.took = took
		g.rates.fills.Done(g.time.seconds(time.Now()), float64(e.size), e.waited)
	}
	if e.from != policy.RAM {
		g.rates.from[e.from].add(float64(e.size), took)
	}
	if e.waiters == 0 {
		g.setIdle(e)
	}
}

// fail ends a fill that failed.
func (g *guarded) fail(e *entry, err error) {
	e.state, e.err = failed, err
	delete(g.slabs.entries, e.key)
	if e.inSlot { // it is where it was
		g.eviction.addIdle(e.batch)
	}
	g.readers.backOff(e)
	if !errors.Is(err, errNoRoom) && !errors.Is(err, context.Canceled) {
		g.count.FillErrors++
	}
}

// setIdle has an entry that is open nowhere become idle, where a victim is looked for.
func (g *guarded) setIdle(e *entry) {
	if g.life.ended {
		return
	}
	now := time.Now()
	if e.opened && !e.copied {
		if !e.last.IsZero() {
			e.gap = blend(e.gap, now.Sub(e.last))
		}
		e.last = now
	}
	if e.stale {
		g.slabs.stale = append(g.slabs.stale, e)
	} else {
		delete(g.slabs.entries, e.key)
		if id := g.slabs.idle.find(e.key, true); id != 0 {
			b := g.slabs.idle.at(id)
			b.last, b.gap = e.last, e.gap
			g.slabs.idle.change(id, b, g.eviction.place(&b, now))
		}
		g.eviction.addIdle(e.batch)
	}
	g.room.given()
}

// unhold ends the hold of one open. An entry that has neither holders nor waiters
// becomes idle.
func (g *guarded) unhold(e *entry) {
	if e.holders--; e.holders == 0 && e.waiters == 0 {
		g.setIdle(e)
	}
}

// outdate takes an entry whose bytes have changed out of the cache. Other opens may
// hold it, and it is given up when they have released it.
func (g *guarded) outdate(e *entry) {
	if e.stale {
		return
	}
	e.stale = true
	if g.slabs.entries[e.key] == e {
		delete(g.slabs.entries, e.key)
		g.readers.missed(e.key)
	}
}

// checkOut takes an idle batch for a while: an open of it waits meanwhile, as for a
// fill.
func (g *guarded) checkOut(id uint32) *entry {
	e := &entry{batch: g.slabs.idle.take(id), done: make(chan struct{})}
	g.slabs.entries[e.key] = e
	g.slabs.begin(e, g.accounts.others.part(false), stall.Admission)
	return e
}

// checkIn ends what checkOut began, the batch in another form if it has one and no
// open waits, which it reports. Of a batch in a slot a worker serves those that wait.
func (g *guarded) checkIn(e *entry, other ...form) (taken bool) {
	if e.waiters > 0 && e.inSlot {
		g.queue.requeue(e)
		return false
	}
	e.state, e.clock = ready, nil
	close(e.done)
	if e.waiters > 0 {
		return false
	}
	for _, f := range other {
		e.form, taken = f, true
	}
	delete(g.slabs.entries, e.key)
	g.eviction.addIdle(e.batch)
	return taken
}

// walkRun numbers are walked before others have the lock: a run
// takes 0.15 to 0.6 ms mostly, and 200,000 batches at one go took 83 to 212.
const walkRun = 256

// walk looks at all that is idle, until it is told not to go on. It takes the lock
// itself, and gives it back from one run to the next: what becomes idle or is taken
// meanwhile may be seen or not, and what is taken and becomes idle again, twice.
func (g *guarded) walk(look func(id uint32) (more bool)) {
	run := func(from uint32) bool {
		g.Lock()
		defer g.Unlock()
		for id := from; id < from+walkRun; id++ {
			if id >= g.slabs.idle.ledger.End() || g.slabs.idle.has(id) && !look(id) {
				return false
			}
		}
		return true
	}
	for from := uint32(1); run(from); from += walkRun {
		runtime.Gosched() // a goroutine that waits for the lock has it first
	}
}

// end takes all that can be mapped out of the cache, for good: opens that end, and
// those that end their wait, find nothing.
func (g *guarded) end() (all []*entry) {
	g.Lock()
	defer g.Unlock()
	all = g.slabs.end(g.time.began)
	g.readers.end()
	g.count.Handles, g.life.ended = 0, true
	return all
}
