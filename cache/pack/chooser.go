package pack

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// ChooserConfig says how codecs are tried.
type ChooserConfig struct {
	Codecs     []Codec              // those to try; nil: Codecs()
	BlockBytes int                  // as the store's
	Clock      func() time.Duration // nil: processor time of the calling thread
	// Every is after how many slabs one is measured again. All codecs take some
	// 0.1 s of processor time for one: with 256 slabs of 16 MiB that is below
	// a tenth of the time that packing them takes.
	Every int
}

// first slabs are all measured: two that happen to be
// of one kind do not decide, and a third is not worth waiting for more.
const first = 3

// A Chooser measures codecs on samples of one dataset. All methods may be
// called concurrently. Between equal measurements its choice is the same.
//
// The lock guards what was measured and chosen. Codecs are tried without it: busy keeps a
// second measurement away.
type Chooser struct {
	config ChooserConfig
	trial  trial
	mu     struct {
		sync.Mutex
		offered  int
		rounds   int // of measuring
		busy     bool
		measures []Measure // of all codecs in their order; nil until the first
		chosen   Codec
	}
}

// NewChooser makes a chooser that has seen nothing: it advises not to pack.
func NewChooser(c ChooserConfig) (*Chooser, error) {
	if c.Codecs == nil {
		c.Codecs = Codecs()
	}
	for _, k := range c.Codecs {
		if !k.valid() {
			return nil, fmt.Errorf("choose codec: %v: %w", k, meta.ErrInvalid)
		}
	}
	var err error
	if c.BlockBytes, err = blockBytes(c.BlockBytes); err != nil {
		return nil, fmt.Errorf("choose codec: %w", err)
	}
	if c.Clock == nil {
		c.Clock = threadTime
	}
	if c.Every == 0 {
		c.Every = 256
	}
	return &Chooser{config: c, trial: trial{c.Codecs, c.BlockBytes, c.Clock}}, nil
}

// threadTime is the processor time of this thread, so that other load on the
// processor does not make a codec look slow.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Offer shows a slab to the chooser. If one is due to be measured, it copies some blocks of
// it, and returns what measures these, to be called once; nil if none is due. That takes
// much longer than the copy, and the slab may go meanwhile.
func (c *Chooser) Offer(plain []byte) (measure func() error, err error) {
	if len(plain) == 0 || !c.due() {
		return nil, nil
	}
	blocks, free, err := c.trial.copied(plain)
	if err != nil {
		return nil, c.end(nil, err)
	}
	return func() error {
		seen, err := c.trial.measure(blocks)
		return c.end(seen, errors.Join(err, free()))
	}, nil
}

// end ends what due began.
func (c *Chooser) end(seen []Measure, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.busy = false
	if err != nil {
		return fmt.Errorf("try codecs on a slab: %w", err)
	}
	c.keep(seen)
	return nil
}

// due counts a slab and reports whether it is to be measured: the first few,
// one in so many later, and never two at a time.
func (c *Chooser) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.mu.offered
	c.mu.offered++
	if c.mu.busy || n >= first && n%c.config.Every != 0 {
		return false
	}
	c.mu.busy = true
	return true
}

// keep joins what was seen to what was known: a mean of the first, later a
// fading one, so that a dataset that changes is noticed. mu is held.
func (c *Chooser) keep(seen []Measure) {
	c.mu.rounds++
	if c.mu.measures == nil {
		c.mu.measures = seen
		return
	}
	weight := max(1/float64(c.mu.rounds), 0.25)
	for i, m := range seen {
		c.mu.measures[i] = c.mu.measures[i].towards(m, weight)
	}
}

// Measures returns what is known of each codec; nothing, before a slab was
// offered.
func (c *Chooser) Measures() []Measure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.measures)
}

// Choose returns the codec that saves most of the wait, or the zero Codec if
// packing does not pay. What was chosen last is kept until another saves a
// tenth more: slabs that are packed in one way are no worse for it.
func (c *Chooser) Choose(s Setting) Codec {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best Codec
	var most, now time.Duration
	for _, m := range c.mu.measures {
		saved := s.unpacked() - s.Wait(m)
		if m.Codec == c.mu.chosen {
			now = saved
		}
		if saved > most {
			best, most = m.Codec, saved
		}
	}
	if now <= 0 || float64(most) > 1.1*float64(now) {
		c.mu.chosen = best
	}
	return c.mu.chosen
}
