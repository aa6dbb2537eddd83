package pressure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

const inside = "live-in-cgroup"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == inside {
		if err := live(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// A sharer is a cache in a group: a file on a tmpfs, and its watcher. It always
// holds all that it may.
type sharer struct {
	fd        int
	resizing  sync.Mutex
	inherited atomic.Int64 // bytes of slabs that it did not fill
	own       atomic.Int64
	samples   atomic.Int64
	failed    atomic.Pointer[error]
	watcher   *Watcher
}

const (
	budget = 2 * limit
	notch  = budget / notches
)

func (c *sharer) held() int64 {
	c.samples.Add(1)
	return c.inherited.Load() + c.own.Load()
}

// resize is both fill and evict.
func (c *sharer) resize(n int64) error {
	c.resizing.Lock()
	defer c.resizing.Unlock()
	if err := unix.Ftruncate(c.fd, n); err != nil {
		return err
	}
	if err := unix.Fallocate(c.fd, 0, 0, max(n, 1)); err != nil {
		return err
	}
	c.own.Store(n)
	return nil
}

func (c *sharer) changed(a Allowance, _ Sample) {
	if err := c.resize(max(a.Bytes-c.inherited.Load(), 0)); err != nil {
		c.failed.Store(&err)
	}
}

// live is the child: it goes into the group and does what a cache does there.
func live(does, group string) error {
	group = filepath.Join(group, "inner")
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	c := new(sharer)
	if does == "inherit" {
		c.inherited.Store(limit / 2)
	}
	var err error
	if c.fd, err = unix.MemfdCreate("slabs", unix.MFD_CLOEXEC); err != nil {
		return err
	}
	if c.watcher, err = New(Config{Budget: budget, Every: 5 * time.Millisecond, Held: c.held, Changed: c.changed}); err != nil {
		return err
	}
	first, sample, _ := c.watcher.Allowance()
	fmt.Printf("at first %+v: %v\n", first, sample)
	if want := strings.TrimPrefix(filepath.Dir(group), "/"); sample.Name != want || sample.Limit != limit {
		return fmt.Errorf("the group is %s, not %+v", want, sample)
	}
	if does == "defy" {
		return c.resize(budget)
	}
	if first.Bytes < limit/4 || first.Bytes >= limit/2 || !first.Ahead {
		return fmt.Errorf("%+v at first, with a limit of %d", first, limit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	c.changed(first, sample)
	done := make(chan struct{})
	go func() { defer close(done); c.watcher.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if does == "inherit" {
		return c.trade(ctx)
	}
	return c.crowd(ctx)
}

// await waits for so many more samples.
func (c *sharer) await(ctx context.Context, n int64) {
	seen := c.samples.Load()
	_ = eventually.Until(ctx, func() error { // a caller finds what is missing then
		if now := c.samples.Load(); now < seen+2*n {
			return fmt.Errorf("%d samples", now-seen)
		}
		return nil
	})
}

// crowd takes all there is, lets others take half of the limit, 2 MiB at a time, and give
// them back. With more than that there would be room for hardly a notch of the budget beside
// them, the reserve and this process, which has more of its own under the race detector.
func (c *sharer) crowd(ctx context.Context) error {
	others, err := unix.Mmap(-1, 0, limit/2, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	if err := c.recover(ctx, limit/2); err != nil {
		return err
	}
	c.await(ctx, 10)
	for at := 0; at < len(others); at += 2 * mib {
		if err := unix.Madvise(others[at:at+2*mib], unix.MADV_POPULATE_WRITE); err != nil {
			return err
		}
		c.await(ctx, 2)
	}
	// A sample may come between what others took and what the cache gave up for it.
	err = eventually.Until(ctx, func() error {
		now, sample, fault := c.watcher.Allowance()
		held := c.own.Load()
		if held <= 0 || held > limit-int64(len(others)) || fault != nil {
			return fmt.Errorf("%+v beside others, %d held, %v", now, held, fault)
		}
		fmt.Printf("beside others %+v: %v\n", now, sample)
		return nil
	})
	if err != nil {
		return err
	}
	if err := unix.Munmap(others); err != nil {
		return err
	}
	return c.recover(ctx, limit/2)
}

// recover waits until so much is held.
func (c *sharer) recover(ctx context.Context, want int64) error {
	var failed *error
	err := eventually.Until(ctx, func() error {
		if failed = c.failed.Load(); failed == nil && c.own.Load() < want {
			now, sample, fault := c.watcher.Allowance()
			return fmt.Errorf("the memory did not come: %+v: %v, %v", now, sample, fault)
		}
		return nil
	})
	switch {
	case failed != nil:
		return *failed
	case err != nil:
		return err
	}
	fmt.Printf("%d bytes are held after %d samples\n", c.own.Load(), c.samples.Load()/2)
	return nil
}

// trade gives up what was inherited for slabs of its own, all at once, before
// the next sample: the group's use grows by as much.
func (c *sharer) trade(ctx context.Context) error {
	c.await(ctx, 10)
	now, sample, _ := c.watcher.Allowance()
	fmt.Printf("with what was inherited %+v: %v\n", now, sample)
	if now.Bytes < limit/2 || now.Bytes > limit-reserve(limit) || sample.Used > limit*3/4 {
		return fmt.Errorf("%+v: %v", now, sample)
	}
	c.inherited.Store(0)
	if err := unix.Ftruncate(3, 0); err != nil {
		return err
	}
	if err := c.resize(now.Bytes); err != nil {
		return err
	}
	c.await(ctx, 10)
	return c.recover(ctx, limit/2)
}
