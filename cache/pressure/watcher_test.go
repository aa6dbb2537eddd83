package pressure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"rankfs/cache/pressure"
	"rankfs/meta"
)

// A machine is a file tree that changes while it is read. What was set lasts,
// so tasks wait longer and longer.
type machine struct{ now atomic.Pointer[moment] }

type moment struct {
	total, available int // GiB
	stall            float64
	since            time.Time
	waited           time.Duration // until then
}

func (m *moment) stalled() time.Duration {
	return m.waited + time.Duration(m.stall*float64(time.Since(m.since)))
}

func (m *machine) set(total, available int, stall float64) {
	next := moment{total, available, stall, time.Now(), 0}
	if last := m.now.Load(); last != nil {
		next.waited = last.stalled()
	}
	m.now.Store(&next)
}

// hide makes everything unreadable.
func (m *machine) hide() { m.now.Store(nil) }

func (m *machine) Open(name string) (fs.File, error) {
	tree := fstest.MapFS{}
	if now := m.now.Load(); now != nil {
		tree["proc/meminfo"] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "MemTotal: %d kB\nMemAvailable: %d kB\n", now.total<<20, now.available<<20)}
		tree["proc/pressure/memory"] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "some avg10=%.2f avg60=0 avg300=0 total=%d\n", now.stall*100, now.stalled().Microseconds())}
	}
	return tree.Open(name)
}

// A cache fills what it may, at once, and gives up what it must.
type cache struct {
	held, calls, timid atomic.Int64
}

func (c *cache) changed(a pressure.Allowance, _ pressure.Sample) {
	c.held.Store(a.Bytes)
	c.calls.Add(1)
	if !a.Ahead {
		c.timid.Add(1)
	}
}

// watch runs a watcher until the function that it returns is called.
func watch(t *testing.T, c pressure.Config) (*pressure.Watcher, func()) {
	w, err := pressure.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	return w, func() { cancel(); <-done }
}

// The cache becomes smaller with the next sample, larger over some, and is told
// nothing while nothing changes.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		var c cache
		m.set(64, 40, 0)
		w, stop := watch(t, pressure.Config{Budget: 8 * gib, Held: c.held.Load, Changed: c.changed, Root: &m})
		if a, s, err := w.Allowance(); a != (pressure.Allowance{Bytes: 8 * gib, Ahead: true}) || s.Limit != 64*gib || err != nil {
			t.Fatalf("%+v of %+v allowed at first, %v", a, s, err)
		}
		c.held.Store(8 * gib)
		time.Sleep(time.Minute + 100*time.Millisecond) // between two samples
		if n := c.calls.Load(); n != 0 {
			t.Errorf("told %d times of no change", n)
		}
		m.set(64, 0, 0)
		time.Sleep(500 * time.Millisecond)
		if n := c.held.Load(); n != 7*gib || c.calls.Load() != 1 || c.timid.Load() != 1 {
			t.Errorf("%d bytes held and %d calls after one sample with nothing left", n, c.calls.Load())
		}
		m.set(64, 20, 0.15)
		time.Sleep(5 * time.Second)
		if n := c.held.Load(); n != 7*gib-10*gib/8 {
			t.Errorf("%d bytes held after ten samples with stalls", n)
		}
		m.set(64, 20, 0)
		time.Sleep(500 * time.Millisecond)
		if n := c.held.Load(); n >= 8*gib {
			t.Errorf("%d bytes held again at once", n)
		}
		time.Sleep(10 * time.Second)
		if a, _, _ := w.Allowance(); a != (pressure.Allowance{Bytes: 8 * gib, Ahead: true}) {
			t.Errorf("%+v when all was well for a while", a)
		}
		stop()
		m.set(64, 0, 0)
		before := c.calls.Load()
		time.Sleep(time.Minute)
		if c.calls.Load() != before {
			t.Error("told of a change after the end")
		}
	})
}

// Where there is no room for all of a budget, a process that has just begun
// leaves as much to itself and others as it takes, until it is seen what they do.
func TestWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		var c cache
		m.set(64, 6, 0)
		w, stop := watch(t, pressure.Config{Budget: 8 * gib, Held: c.held.Load, Changed: c.changed, Root: &m})
		defer stop()
		const room = 5 * gib // a GiB is reserved
		if a, _, _ := w.Allowance(); a != (pressure.Allowance{Bytes: room / 2, Ahead: true}) {
			t.Errorf("%+v at first", a)
		}
		c.held.Store(2 * gib)
		for i := range 10 {
			m.set(64, 6-int((c.held.Load()+gib-1)/gib), 0) // the cache takes what it may
			time.Sleep(500 * time.Millisecond)
			if i == 0 && c.held.Load() > room*3/4 {
				t.Errorf("%d bytes held after one sample", c.held.Load())
			}
		}
		if n := c.held.Load(); n < room-gib || n > room {
			t.Errorf("%d bytes held in the end, there is room for %d", n, int64(room))
		}
	})
}

// When tasks stall, fills that no reader waits for yet are stopped within a sample, whatever
// the mean of ten seconds says by then.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		var c cache
		m.set(64, 40, 0)
		_, stop := watch(t, pressure.Config{Budget: 8 * gib, Held: c.held.Load, Changed: c.changed, Root: &m})
		defer stop()
		time.Sleep(time.Minute + 100*time.Millisecond)
		m.set(64, 40, 0.5)
		time.Sleep(200 * time.Millisecond)
		m.set(64, 40, 0)
		time.Sleep(300 * time.Millisecond)
		if c.calls.Load() != 1 || c.timid.Load() != 1 {
			t.Errorf("told %d times, %d of these to fetch nothing ahead", c.calls.Load(), c.timid.Load())
		}
	})
}

// What a person has to know is logged once: that the budget is not to be had,
// and that it is.
func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		var c cache
		var log bytes.Buffer
		m.set(64, 6, 0)
		_, stop := watch(t, pressure.Config{Budget: 8 * gib, Held: c.held.Load, Changed: c.changed, Root: &m,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		for _, available := range []int{5, 4, 5, 40, 39, 0, 1, 0, 40} {
			time.Sleep(time.Minute)
			m.set(64, available, 0)
		}
		time.Sleep(time.Minute)
		stop()
		if short, enough := strings.Count(log.String(), "memory is short"), strings.Count(log.String(), "for all of the cache"); short != 2 || enough != 2 {
			t.Errorf("logged short %d times, enough %d times:\n%s", short, enough, &log)
		}
	})
}

// A machine that cannot be read changes nothing, is logged once, and is read
// again when it can be.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m machine
		var c cache
		var log bytes.Buffer
		m.set(64, 40, 0)
		w, stop := watch(t, pressure.Config{Budget: 8 * gib, Held: c.held.Load, Changed: c.changed, Root: &m,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		m.hide()
		time.Sleep(10 * time.Second)
		if a, _, fault := w.Allowance(); a.Bytes != 8*gib || !errors.Is(fault, fs.ErrNotExist) {
			t.Errorf("%+v allowed, %v", a, fault)
		}
		m.set(64, 0, 0)
		time.Sleep(time.Second)
		if a, _, fault := w.Allowance(); a.Bytes != 0 || a.Ahead || fault != nil {
			t.Errorf("%+v allowed with nothing held or left, %v", a, fault)
		}
		stop()
		if n := strings.Count(log.String(), "cannot be read"); n != 1 {
			t.Errorf("logged %d times: %s", n, &log)
		}
	})
}

func TestConfig(t *testing.T) {
	held := func() int64 { return 0 }
	for _, c := range []pressure.Config{{Budget: -1, Held: held}, {Budget: 1}, {Held: held, Every: -1}} {
		if _, err := pressure.New(c); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := pressure.New(pressure.Config{Held: held, Root: fstest.MapFS{}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root without proc: %v", err)
	}
}
