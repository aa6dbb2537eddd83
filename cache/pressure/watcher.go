package pressure

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"rankfs/meta"
)

// Config is the cache that a watcher advises and the system that it samples.
type Config struct {
	Budget int64 // bytes at most
	// Held returns how much of the budget is used, in real bytes and with slabs that
	// are dropped but still mapped. It may be called at any time, concurrently.
	Held func() int64
	// Changed is told what is allowed from now on, and why. It is called by Run
	// alone, one call after the other, and the next sample waits for it.
	Changed func(Allowance, Sample)
	Root    fs.FS // has proc and sys; nil is the root directory
	// Every is the time between two samples, half a second: memory that others
	// fill at a GiB a second is seen before the reserve of a limit is gone.
	// A sample takes 0.1 to 0.2 ms. The kernel's own alarm, a trigger of PSI,
	// would come no sooner than tasks have waited for a fifth of a second.
	Every time.Duration
	Log   *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Budget < 0 || c.Held == nil || c.Every < 0 {
		return c, fmt.Errorf("watch memory: budget of %d bytes, every %v: %w", c.Budget, c.Every, meta.ErrInvalid)
	}
	if c.Changed == nil {
		c.Changed = func(Allowance, Sample) {}
	}
	if c.Root == nil {
		c.Root = os.DirFS("/")
	}
	if c.Every == 0 {
		c.Every = 500 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// A Watcher knows how much of a budget may be used. The lock guards what the last sample
// came to, and is not held while one is taken.
type Watcher struct {
	config Config
	system system
	mu     struct {
		sync.Mutex
		allowed Allowance
		sample  Sample
		taken   time.Time
		fault   error // why the last sample could not be taken
	}
}

// New takes a first sample. Where there is room for the whole budget, it is
// allowed at once.
func New(c Config) (*Watcher, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Watcher{config: c}
	if w.system, err = newSystem(c.Root); err != nil {
		return nil, err
	}
	s, err := w.take()
	if err != nil {
		return nil, err
	}
	calm := s
	calm.Stall.Mean = 0 // tasks that stall before the cache holds anything do so without it
	w.mu.sample, w.mu.taken = s, time.Now()
	w.mu.allowed = Allowance{first(calm, c.Budget), Ahead(calm, true)}
	if w.mu.allowed.Bytes < c.Budget {
		c.Log.Warn("memory is short: the cache will be smaller than its budget until there is more",
			"budget", c.Budget, "allowed", w.mu.allowed.Bytes, "because", s)
	}
	return w, nil
}

// take reads what limits us, and what is held before and after that, of which
// the less counts: what was filled or dropped meanwhile then makes the room look
// smaller rather than larger.
func (w *Watcher) take() (Sample, error) {
	before := w.config.Held()
	g, err := w.system.sample()
	return Sample{Group: g, Held: min(before, w.config.Held())}, err
}

// Allowance returns what a cache may do now, by what was seen last, and why no
// more recent sample could be taken, if so.
func (w *Watcher) Allowance() (a Allowance, s Sample, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.allowed, w.mu.sample, w.mu.fault
}

// Run takes samples until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(w.config.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look()
		}
	}
}

// look takes a sample and tells of a change. A sample that cannot be taken
// changes nothing; that is logged once.
func (w *Watcher) look() {
	s, err := w.take()
	last, now, was := w.learn(&s, err)
	if err != nil && was == nil {
		w.config.Log.Warn("memory limits cannot be read; the cache keeps its size", "allowed", now.Bytes, "error", err)
	}
	if now == last {
		return
	}
	switch budget := w.config.Budget; {
	case last.Bytes == budget && now.Bytes < budget:
		w.config.Log.Warn("memory is short: the cache gives some up until there is more",
			"budget", budget, "allowed", now.Bytes, "because", s)
	case last.Bytes < budget && now.Bytes == budget:
		w.config.Log.Info("there is memory for all of the cache again", "budget", budget)
	}
	w.config.Changed(now, s)
}

// learn makes of a sample what is allowed. It returns that and what was before
// it, and says in s how long tasks have waited since.
func (w *Watcher) learn(s *Sample, fault error) (last, now Allowance, was error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, was, w.mu.fault = w.mu.allowed, w.mu.fault, fault
	if fault != nil {
		return last, last, was
	}
	at := time.Now()
	s.Recent = s.stalled(w.mu.sample.Group, at.Sub(w.mu.taken))
	w.mu.allowed = Allowance{Allowed(*s, w.config.Budget, last.Bytes), Ahead(*s, last.Ahead)}
	w.mu.sample, w.mu.taken = *s, at
	return last, w.mu.allowed, was
}
