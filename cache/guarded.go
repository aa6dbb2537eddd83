package cache

import (
	"sync"
	"sync/atomic"
	"time"

	"rankfs/cache/ahead"
)

// guarded is all that the cache's one lock guards, in parts with one job each.
//
// The parts are plain structs: none locks, waits, logs or moves a byte, and the
// lock is held whenever a method of one of them is called. Each calls only those
// above it. Under the lock no other lock is taken but, to look up whether a disk
// has a slab, that of the disks' index; what moves bytes (workers, admission,
// store, descriptors, mover, planning) takes the lock for moments.
type guarded struct {
	sync.Mutex
	time     timeline
	rates    rates     // what fills and writes take
	slabs    slabs     // what is here
	readers  readers   // who reads what, and what they come to
	strategy strategy  // where batches should be
	eviction eviction  // what goes first
	queue    queue     // what workers do next
	room     roomQueue // fills that wait for memory
	moves    moves     // what the mover does next
	count    counters
	strained bool // memory is short: nothing is made ready ahead now
	closed   bool // no more opens
	ended    bool // and nothing becomes idle any more
}

// newGuarded is the state of an empty cache.
func newGuarded(config *Config, budget *atomic.Int64) (*guarded, error) {
	g := &guarded{time: timeline{time.Now()}}
	var err error
	if g.strategy, err = newStrategy(config.Policy); err != nil {
		return nil, err
	}
	g.rates.fills = ahead.New(config.Workers)
	g.slabs = slabs{entries: make(map[Key]*entry), idle: newShelf(g.time.began), stalls: config.Stalls}
	g.readers = readers{
		config: config, budget: budget, slabs: &g.slabs, rates: &g.rates, jobs: make(map[[16]byte]*job),
		tenants: parties{of: make(map[[16]byte]*party)}, traces: traces{of: make(map[tracedKey]*traced)},
	}
	g.eviction = eviction{
		time: g.time, budget: budget, slabs: &g.slabs, readers: &g.readers, strategy: &g.strategy, rates: &g.rates,
	}
	g.queue = queue{readers: &g.readers, slabs: &g.slabs, workers: config.Workers, wake: sync.NewCond(g)}
	g.room = roomQueue{config: config, slabs: &g.slabs, queue: &g.queue, token: make(chan struct{}, 1), crowds: crowds{waits: make(map[int32]*entry)}}
	return g, nil
}

// A timeline is the planner's clock: seconds since the cache began.
type timeline struct{ began time.Time }

// unhold ends the hold of one open. An entry that has neither holders nor waiters
// becomes idle.
func (g *guarded) unhold(e *entry) {
	if e.holders--; e.holders == 0 && e.waiters == 0 {
		g.rest(e)
	}
}

// outdate takes an entry out of the cache whose bytes are no longer what they were.
// Others may hold it, and it is given up when they are done.
func (g *guarded) outdate(e *entry) {
	if e.stale {
		return
	}
	e.stale = true
	if g.slabs.entries[e.key] == e {
		delete(g.slabs.entries, e.key)
		g.readers.lost(e.key)
	}
}

// end takes all that can be mapped out of the cache, for good: opens that end, and
// those that end their wait, find nothing.
func (g *guarded) end() (all []*entry) {
	g.Lock()
	defer g.Unlock()
	all = g.slabs.end(g.time.began)
	g.readers.end()
	g.count.handles, g.ended = 0, true
	return all
}
