package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"rankfs/cache/pack"
	"rankfs/meta"
)

// packed is the tier of slabs that are compressed in memory. What it takes is
// reserved of the budget of the RAM tier: the two share one.
//
// While its lock is held those of the store and of the RAM tier may be taken.
type packed struct {
	ram   *ram
	store *pack.Store

	mu struct {
		sync.Mutex
		reserved int64 // of the budget: what slabs take, and what those being packed may
		pending  int64 // of reserved: the latter
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
	p.store, err = pack.New(pack.Config{})
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

// offer shows bytes of a dataset to its chooser, and returns what measures a copy of some
// of them; nil if none is due.
func (p *packed) offer(dataset string, plain []byte) (measure func() error, err error) {
	c, err := p.of(dataset)
	if err != nil {
		return nil, err
	}
	return c.Offer(plain)
}

// forget drops the chooser that was used longest ago. p.mu is held.
func (p *packed) forget() {
	oldest := ""
	for name, c := range p.mu.choosers {
		if o := p.mu.choosers[oldest]; o == nil || c.used.Before(o.used) {
			oldest = name
		}
	}
	delete(p.mu.choosers, oldest)
}

// measured is the last measurement of the codec that is best for a setting; ok is
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
func (p *packed) put(ctx context.Context, k Key, plain []byte, m pack.Measure) (number uint32, real int64, err error) {
	most := meta.WholePages(int64(float64(len(plain))*min(1, m.Ratio*spread))) + packedMargin
	if err := p.reserve(most); err != nil {
		return 0, 0, err
	}
	defer p.count(most)
	number, real, err = p.store.Put(ctx, nameOf(k), plain, m.Codec)
	if errors.Is(err, meta.ErrNoSpace) && !errors.Is(err, errNoRoom) {
		err = meta.Worded(errNoRoom, "%w", err)
	}
	return number, real, err
}

// nameOf is the store's name of a batch.
func nameOf(k Key) (n pack.Name) {
	copy(n[:], k.Series[:])
	binary.LittleEndian.PutUint64(n[16:], k.Rank)
	binary.LittleEndian.PutUint64(n[24:], k.Step)
	return n
}

// A batch may be packed to a quarter more than was measured of others; the packed one
// ends within a page, and has a table.
const (
	spread       = 1.25
	packedMargin = 64 << 10
)

func (p *packed) reserve(bytes int64) error {
	if err := p.ram.chargeOthers(bytes); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.reserved += bytes
	p.mu.pending += bytes
	p.store.Limit(p.mu.reserved)
	return nil
}

// count ends a reservation: what is packed counts with its real bytes.
func (p *packed) count(reserved int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pending -= reserved
	p.shrink()
}

// shrink gives back what is reserved and not needed. p.mu is held.
func (p *packed) shrink() {
	need := p.store.Stats().Used + p.mu.pending
	if more := p.mu.reserved - need; more > 0 {
		p.mu.reserved = need
		p.store.Limit(need)
		p.ram.releaseOthers(more)
	}
}

// drop gives back a packed slab, once.
func (p *packed) drop(number uint32) {
	p.store.Drop(number)
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
