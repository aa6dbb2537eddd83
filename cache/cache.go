package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
	"rankfs/meta"
)

// A Plan is a view whose bytes can be had: the cache's only source.
//
// ID names the whole, Key the content of a batch: equal keys mean equal bytes,
// on any machine and after any restart. Find is the inverse of Key, if it is
// quick to say. Next is the plan of the epoch to come, nil if that is not known;
// it may take its time, the others not. Fill writes the batch into dst, whose
// length is Size, without keeping dst; it returns an error rather than a short
// batch. Once says that no other epoch has the same batches; Shared, that fills
// of other plans copy from them, by Part. Dataset names what all records are of:
// what packs one batch well packs others well. All methods may be called
// concurrently.
type Plan interface {
	ID() [16]byte
	Dataset() string
	Steps() uint64
	Key(rank, step uint64) Key
	Find(k Key) (rank, step uint64, ok bool)
	Next() Plan
	Once() bool
	Shared() bool
	Ahead(rank, step uint64) bool
	Size(rank, step uint64) int64
	Fill(ctx context.Context, rank, step uint64, dst []byte) error
}

// A Key names the content of a batch: that of a plan's rank and step, unless
// other plans have it too and agree on another name.
type Key struct {
	Plan       [16]byte
	Rank, Step uint64
}

// A Cache turns batches into slabs.
//
// While mu is held no other lock is taken, no tier is called and no byte moved.
type Cache struct {
	config Config
	ram    *ram
	packed *packed
	nvme   *disks.Tier // nil if there is none
	began  time.Time
	ctx    context.Context
	stop   context.CancelFunc
	tasks  sync.WaitGroup
	drawn  policy.Problem // what was planned last, whose memory the next plan takes; of who plans alone

	mu struct {
		sync.Mutex
		entries map[Key]*entry
		shelf   *shelf   // has what is ready and held by nobody, and what is packed
		stale   []*entry // that nobody holds any more
		demand  []*entry // waited for and not begun, in order of arrival
		line    []*entry // being made, and waiting for room, in order of arrival: no more than workers
		jobs    map[[16]byte]*job
		parties parties
		readers int           // of all jobs
		traces  traces        // of what they opened
		others  turn          // for opens that are followed no more
		clock   time.Duration // of turns
		strategy
		pins     map[[16]byte]policy.Level // by the plan of keys: no batch goes below
		strained bool                      // nothing is made ready ahead now
		workers  int
		resting  int         // of those, that have nothing to do
		fills    ahead.Fills // how many workers there should be
		closed   bool
		ended    bool                // and nothing is laid down any more
		speeds   [policy.Levels]rate // bytes per second of a fill from there
		writes   rate                // of slabs to disks
		count    counters
		crowds   crowds
	}
	wake   *sync.Cond // something for a worker to do, or to give up waiting for
	mover  mover
	room   chan struct{} // one token: a slab was given back, or may have been
	replan chan struct{} // one token: what was planned is no longer right
}

// New starts a cache. Its workers run until Close.
func New(c Config) (*Cache, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	k := &Cache{config: c, room: make(chan struct{}, 1), replan: make(chan struct{}, 1), began: time.Now()}
	if k.mu.strategy, err = newStrategy(c.Policy); err != nil {
		return nil, err
	}
	k.wake = sync.NewCond(&k.mu)
	k.mover = mover{k, make(chan struct{}, 1), new(sync.Mutex)}
	k.mu.entries, k.mu.shelf = make(map[Key]*entry), newShelf(k.began)
	k.mu.pins = make(map[[16]byte]policy.Level)
	k.mu.jobs = make(map[[16]byte]*job)
	k.mu.parties.of = make(map[[16]byte]*party)
	k.mu.crowds.waits = make(map[int32]*entry)
	k.mu.traces.of = make(map[tracedKey]*traced)
	if k.ram, err = newRAM(c.RAMBytes); err != nil {
		return nil, err
	}
	if k.packed, err = newPacked(k.ram); err != nil {
		return nil, errors.Join(err, k.ram.close())
	}
	if len(c.NVMe) > 0 {
		if k.nvme, err = disks.New(disks.Config{
			Dirs: c.NVMe, Floor: c.NVMeFloor, Log: c.Log, First: k.first,
		}); err != nil {
			return nil, errors.Join(err, k.packed.close(), k.ram.close())
		}
	}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.mu.fills, k.mu.workers = ahead.New(c.Workers), c.Workers
	for range c.Workers {
		k.tasks.Go(k.work)
	}
	k.tasks.Go(k.keepPlanning)
	k.tasks.Go(k.mover.run)
	return k, nil
}

// A Slab is a complete batch, held until Release.
type Slab struct {
	cache *Cache
	entry *entry
	by    int32 // the thread that opened it
	once  sync.Once
}

// Backing is the id under which the kernel knows the file; zero if there is
// no Backing.
func (s *Slab) Backing() int32 { return s.entry.backing }

// Fd is the slab's file. It is valid until Release and must only be read; below
// zero if the daemon has no descriptor left for it.
func (s *Slab) Fd() int {
	if e := s.entry; e.ram != nil {
		if _, err := s.cache.bytes(e.ram); err != nil {
			return -1
		}
	}
	return s.entry.fd()
}

// Size is how many bytes the batch has.
func (s *Slab) Size() int64 { return s.entry.size }

// Tier says where the slab's bytes are.
func (s *Slab) Tier() string { return s.entry.tier() }

// Open returns the slab of a batch, waiting for it to be complete. The wait
// ends with ctx, or after the configured time; the fill goes on for others.
func (c *Cache) Open(ctx context.Context, p Plan, rank, step uint64) (*Slab, error) {
	return c.OpenFor(ctx, nil, p, rank, step)
}

// OpenFor is Open, and has the account know what was waited for.
func (c *Cache) OpenFor(ctx context.Context, account *stall.Open, p Plan, rank, step uint64) (*Slab, error) {
	var wrong error
	for range 3 {
		s, err := c.open(ctx, account, p, rank, step)
		if err != nil {
			return nil, err
		}
		if wrong = s.check(); wrong == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("open batch: its slab was wrong three times; look at the disks of --nvme: %w", wrong)
}

func (c *Cache) open(ctx context.Context, account *stall.Open, p Plan, rank, step uint64) (*Slab, error) {
	start := time.Now()
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil, fmt.Errorf("open batch: %w", errClosing)
	}
	c.mu.count.opens++
	if len(c.mu.demand) >= maxDemand {
		c.mu.count.openErrors++
		c.mu.Unlock()
		return nil, fmt.Errorf("open batch: %w: %d opens wait already", meta.ErrBusy, maxDemand)
	}
	party := c.party(p, start)
	s, e, mine := c.join(p, rank, step, start, stall.Admission)
	party.opens(s == nil && !(mine && e.pooled))
	if s != nil {
		s.openedBy(account.By())
		c.mu.count.ready++
		c.mu.Unlock()
		return s, nil
	}
	clock := e.clock
	switch {
	case mine && e.pooled:
		if s := c.openPooled(e, account.By()); s != nil {
			return s, nil
		}
		c.mu.Lock()
	case mine:
		c.mu.demand = append(c.mu.demand, e)
		c.wake.Broadcast()
	}
	c.mu.count.waited++
	if by := account.By(); by != 0 {
		c.mu.crowds.waits[by] = e
	}
	c.mu.Unlock()
	return c.stalled(ctx, account, e, clock.Wait(start))
}

// openPooled has an open bring its entry out of the pool itself, or returns nil if
// it has to wait. mu is held, and given back.
func (c *Cache) openPooled(e *entry, by int32) *Slab {
	c.tasks.Add(1) // before Close waits for them, as it is not closed
	defer c.tasks.Done()
	c.mu.Unlock()
	if !c.unpool(e) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	c.mu.count.ready++
	s := c.hold(e)
	s.openedBy(by)
	return s
}

// join has an open wait for the entry of a batch, unless that is ready: then it
// holds the slab. mu is held.
func (c *Cache) join(p Plan, rank, step uint64, now time.Time, with stall.Cause) (s *Slab, e *entry, mine bool) {
	e, mine = c.want(p, rank, step)
	expected := c.follow(e, p, rank, step, now)
	if e.state == ready {
		return c.hold(e), e, false
	}
	e.waiters++
	if mine {
		c.begin(e, c.turnOf(p, expected), with)
	}
	return nil, e, mine
}

// maxDemand bounds the opens that may wait for a worker: each is a thread of
// some process, so a job has far fewer.
const maxDemand = 1 << 16

var errClosing = fmt.Errorf("%w: the daemon is shutting down", meta.ErrBusy)

func (c *Cache) await(ctx context.Context, e *entry) (*Slab, error) {
	timer := time.NewTimer(c.config.OpenTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-e.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = context.DeadlineExceeded
	case <-c.ctx.Done():
		err = errClosing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	if err == nil && c.mu.ended {
		err = errClosing
	}
	if e.state == ready && err == nil {
		c.serve(e)
		return c.hold(e), nil
	}
	if err == context.DeadlineExceeded {
		err = fmt.Errorf("batch not ready after %v: %w", c.config.OpenTimeout, errors.Join(err, e.stalled))
	}
	if e.state == ready && e.waiters == 0 && e.holders == 0 {
		c.rest(e)
	}
	c.mu.count.openErrors++
	if err == nil {
		err = e.err
	}
	return nil, err
}

// hold counts one more open of a ready entry. mu is held.
func (c *Cache) hold(e *entry) *Slab {
	e.holders++
	e.opened = true
	c.mu.count.handles++
	return &Slab{cache: c, entry: e}
}

// openedBy notes which thread has the slab open, if that is known. mu is held.
func (s *Slab) openedBy(thread int32) {
	if s.by = thread; thread != 0 {
		s.entry.threads = append(s.entry.threads, thread)
	}
}

// Release ends the hold of one open. It may be called more than once.
func (s *Slab) Release() {
	s.once.Do(func() {
		c := s.cache
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.ended {
			return
		}
		s.entry.holders--
		if i := slices.Index(s.entry.threads, s.by); i >= 0 {
			s.entry.threads = slices.Delete(s.entry.threads, i, i+1)
		}
		c.mu.count.handles--
		if s.entry.holders == 0 && s.entry.waiters == 0 {
			c.rest(s.entry)
		}
	})
}

// Contains reports whether the batch could be opened without a fill, and from
// which tier.
func (c *Cache) Contains(p Plan, rank, step uint64) (tier string, ok bool) {
	k := p.Key(rank, step)
	c.mu.Lock()
	there, ok := c.ready(k)
	packed := c.isPacked(k)
	c.mu.Unlock()
	if ok {
		return there.tier(), true
	}
	if packed {
		return "packed", true
	}
	if c.nvme != nil && c.nvme.Has(disks.Key(k)) {
		return "nvme", true
	}
	return "", false
}

// end takes all that can be mapped out of the cache, for good: opens that end, and
// those that end their wait, find nothing.
func (c *Cache) end() (all []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = c.mu.stale
	for _, e := range c.mu.entries {
		if e.state == ready { // and whoever holds it may look at it
			all = append(all, &entry{kept: e.kept}) // which is in a file
		}
	}
	for id := range c.mu.shelf.all() {
		if e := (&entry{kept: c.mu.shelf.at(id)}); !e.packed {
			all = append(all, e)
		}
	}
	clear(c.mu.entries)
	clear(c.mu.jobs)
	clear(c.mu.parties.of)
	c.mu.shelf, c.mu.stale, c.mu.readers, c.mu.count.handles, c.mu.ended = newShelf(c.began), nil, 0, 0, true
	return all
}

// Close stops the workers, fails the opens that wait, and gives everything
// back. A slab that is still open is given back too: what ranks map, the
// kernel keeps for them.
func (c *Cache) Close() error {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil
	}
	c.mu.closed = true
	c.stop()
	c.wake.Broadcast()
	c.mu.Unlock()
	c.tasks.Wait()
	c.ram.pool.ending.Store(true)
	for _, e := range c.end() {
		c.discard(e)
	}
	err := errors.Join(c.packed.close(), c.ram.close())
	if c.nvme != nil {
		err = errors.Join(err, c.nvme.Close())
	}
	return err
}
