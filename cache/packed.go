package cache

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"rankfs/cache/pack"
	"rankfs/meta"
)

// packed is the tier of slabs that are compressed in memory. What it takes is
// claimed from the budget of the RAM tier: the two share one.
type packed struct {
	ram   *ram
	store *pack.Store[Key]

	mu struct {
		sync.Mutex
		claimed  int64 // of the budget: what slabs take, and what those being packed may
		pending  int64 // of claimed: the latter
		choosers map[string]*chooser
	}
}

// A chooser knows how the batches of a dataset are best packed.
type chooser struct {
	*pack.Chooser
	used time.Time
}

// maxChoosers bounds the datasets that are known at once.
const maxChoosers = 64

func newPacked(r *ram) (*packed, error) {
	p := &packed{ram: r}
	p.mu.choosers = make(map[string]*chooser)
	var err error
	p.store, err = pack.New[Key](pack.Config{})
	return p, err
}

// of finds or makes the chooser of a dataset.
func (p *packed) of(dataset string) (*chooser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.mu.choosers[dataset]
	if c == nil {
		fresh, err := pack.NewChooser(pack.ChooserConfig{})
		if err != nil {
			return nil, err
		}
		if len(p.mu.choosers) >= maxChoosers {
			p.forget()
		}
		c = &chooser{Chooser: fresh}
		p.mu.choosers[dataset] = c
	}
	c.used = time.Now()
	return c, nil
}

// offer shows bytes of a dataset to who knows how to pack it.
func (p *packed) offer(dataset string, plain []byte) error {
	c, err := p.of(dataset)
	if err != nil {
		return err
	}
	return c.Offer(plain)
}

// forget drops the chooser that was used longest ago. mu is held.
func (p *packed) forget() {
	oldest := ""
	for name, c := range p.mu.choosers {
		if o := p.mu.choosers[oldest]; o == nil || c.used.Before(o.used) {
			oldest = name
		}
	}
	delete(p.mu.choosers, oldest)
}

// measured is what is known of the codec that is best for a setting; ok is
// false if packing does not pay, as far as is known.
func (p *packed) measured(dataset string, s pack.Setting) (m pack.Measure, ok bool) {
	c, err := p.of(dataset)
	if err != nil {
		return m, false
	}
	best := c.Choose(s)
	for _, m := range c.Measures() {
		if m.Codec == best && best != (pack.Codec{}) {
			return m, true
		}
	}
	return m, false
}

// put packs bytes that do not change meanwhile. The error wraps errNoRoom if
// the budget cannot take so many more.
func (p *packed) put(ctx context.Context, k Key, plain []byte, m pack.Measure) (real int64, err error) {
	most := pages(int64(float64(len(plain))*min(1, m.Ratio*spread))) + packedMargin
	if err := p.claim(most); err != nil {
		return 0, err
	}
	defer p.settle(most)
	if err := p.store.Put(ctx, k, plain, m.Codec); err != nil {
		if errors.Is(err, meta.ErrNoSpace) {
			err = errors.Join(err, errNoRoom)
		}
		return 0, err
	}
	real, _ = p.store.Has(k)
	return real, nil
}

// What one batch is packed to may be a quarter more than what was measured of
// others; a blob ends within a page, and has a table.
const (
	spread       = 1.25
	packedMargin = 64 << 10
)

func (p *packed) claim(bytes int64) error {
	if err := p.ram.claim(bytes); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.claimed += bytes
	p.mu.pending += bytes
	p.store.Limit(p.mu.claimed)
	return nil
}

// settle ends a claim: what is packed counts with its real bytes.
func (p *packed) settle(claimed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pending -= claimed
	p.shrink()
}

// shrink gives back what is claimed and not needed. mu is held.
func (p *packed) shrink() {
	need := p.store.Stats().Used + p.mu.pending
	if more := p.mu.claimed - need; more > 0 {
		p.mu.claimed = need
		p.store.Limit(need)
		p.ram.unclaim(more)
	}
}

func (p *packed) drop(k Key) {
	p.store.Drop(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shrink()
}

func (p *packed) close() error {
	err := p.store.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pending = 0
	p.shrink()
	return err
}

// pack keeps a slab that nobody changes in packed form too, if that pays. The
// first one costs another its place: there is no other room to begin with.
func (c *Cache) pack(e *entry) bool {
	c.mu.Lock()
	m, pays := c.mu.packing[e.key.Plan]
	history := e.history // an open may change it meanwhile
	c.mu.Unlock()
	if !pays {
		return false
	}
	b := &entry{batch: e.batch, state: ready, slot: away, form: form{blob: true, size: e.size}, history: history}
	real, err := c.packed.put(c.ctx, e.key, e.ram.mem, m)
	if errors.Is(err, errNoRoom) {
		if least := c.lesser(b); least != nil {
			c.drop(least)
			real, err = c.packed.put(c.ctx, e.key, e.ram.mem, m)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		e.dense = errors.Is(err, pack.ErrNoGain)
		c.config.Log.Debug("slab not packed", "cause", err)
		return false
	}
	b.real = real
	c.mu.blobs[e.key] = b
	b.worth = c.worth(b)
	heap.Push(&c.mu.idle, b)
	return true
}

// lesser takes what is worth less than b out of the cache, unless a reader is
// just coming to it.
func (c *Cache) lesser(b *entry) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.idle) == 0 {
		return nil
	}
	least := c.mu.idle[0]
	if least.worth >= c.worth(b) || !least.opened && !math.IsInf(c.nextUse(least), 1) {
		return nil
	}
	return c.remove(least)
}

// unpack fills a slab from its packed form, if there is one that is whole.
func (c *Cache) unpack(e *entry, f *ramFile) bool {
	c.mu.Lock()
	b := c.mu.blobs[e.key]
	c.mu.Unlock()
	if b == nil || b.size != e.size {
		return false
	}
	err := c.packed.store.Get(e.key, f.mem)
	if err == nil {
		return true
	}
	if !errors.Is(err, meta.ErrNotExist) {
		c.config.Log.Warn("packed slab not served", "cause", err)
	}
	c.packed.drop(e.key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.blobs[e.key] == b {
		c.remove(b)
	}
	return false
}
