package cache

import (
	"context"
	"errors"
	"sync"

	"rankfs/cache/disks"
)

// A Cache turns batches into slabs.
//
// What it knows is in guarded, under one lock; what moves bytes is in these,
// of which each calls only those that stand after it here. Opens go from open.go
// to the queue, and from there by work.go down.
type Cache struct {
	config Config
	mu     *guarded

	workers     *workers     // fill what opens wait for, and what is ahead of readers, with room from admission
	inputs      *inputs      // make what batches are made of, on the goroutines that fill these
	holds       *holds       // of slabs that are open
	choosing    *choosing    // says where batches should be
	mover       *mover       // brings them there
	store       *store       // gives slabs up, and makes copies of them before
	descriptors *descriptors // has idle slabs do without open files
	*tiers                   // where bytes are

	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup // goroutines, and opens that fill
}

// New starts a cache. Its goroutines run until Close.
func New(config Config) (*Cache, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cache{config: config}
	c.ctx, c.stop = context.WithCancel(context.Background())
	if c.tiers, err = newTiers(&c.config); err != nil {
		return nil, err
	}
	if c.mu, err = newGuarded(&c.config, &c.ram.budget); err != nil {
		return nil, errors.Join(err, c.tiers.close())
	}
	c.descriptors = &descriptors{c.tiers, c.mu}
	learnt := make(chan struct{}, 1)
	c.store = &store{c.tiers, c.mu, c.descriptors, c.ctx, learnt}
	c.mover = &mover{tiers: c.tiers, mu: c.mu, descriptors: c.descriptors, store: c.store, ctx: c.ctx, token: make(chan struct{}, 1)}
	c.choosing = &choosing{tiers: c.tiers, mu: c.mu, mover: c.mover, ctx: c.ctx, stale: make(chan struct{}, 1), learnt: learnt}
	room := &admission{c.tiers, c.mu, c.descriptors, c.store, c.mover, c.ctx}
	c.holds = &holds{&c.config, c.mu, c.descriptors, c.ctx, &c.tasks}
	c.inputs = &inputs{c.holds, &maker{c.tiers, c.mu, room, c.store, c.ctx, writeWhole}}
	c.workers = &workers{&maker{c.tiers, c.mu, room, c.store, c.ctx, c.inputs.write}, c.mover, &c.tasks}
	if err := c.openDisks(); err != nil {
		return nil, errors.Join(err, c.tiers.close())
	}
	for range config.Workers {
		c.tasks.Go(c.workers.work)
	}
	c.tasks.Go(c.choosing.keepChoosing)
	c.tasks.Go(c.mover.run)
	return c, nil
}

// openDisks opens the NVMe tier, if there is to be one. Its slabs make way by what
// the cache knows of them.
func (c *Cache) openDisks() (err error) {
	if len(c.config.NVMe) == 0 {
		return nil
	}
	c.nvme, err = disks.New(disks.Config{Dirs: c.config.NVMe, Floor: c.config.NVMeFloor, Log: c.config.Log, First: c.store.goesFirst})
	c.mu.eviction.nvme = c.nvme
	return err
}

// Contains reports whether the batch could be opened without a fill, and from
// which tier.
func (c *Cache) Contains(k Key) (tier string, ok bool) {
	c.mu.Lock()
	there, ok := c.mu.slabs.ready(k)
	packed := c.mu.slabs.isPacked(k)
	c.mu.Unlock()
	if ok {
		return there.tier(), true
	}
	if packed {
		return "packed", true
	}
	if c.nvme != nil && c.nvme.Has(k) {
		return "nvme", true
	}
	return "", false
}

// Close stops the workers, fails the opens that wait, and gives everything
// back. A slab that is still open is given back too: what ranks map, the
// kernel keeps for them.
func (c *Cache) Close() error {
	c.mu.Lock()
	if c.mu.life.closed {
		c.mu.Unlock()
		return nil
	}
	c.mu.life.closed = true
	c.stop()
	c.mu.queue.wake.Broadcast()
	c.mu.Unlock()
	c.tasks.Wait()
	c.ram.slotFile.ending.Store(true)
	for _, e := range c.mu.end() {
		c.descriptors.discard(e)
	}
	return c.tiers.close()
}
