package pool

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// How often the bounds of jobs follow what they have, while any is in use, and how long
// one counts as in use after that.
const (
	divideTime = 20 * time.Millisecond
	inUseTime  = 200 * time.Millisecond
)

// slack is the part of the budget by which a bound may be less than it should. What bounds
// are more than they should is at most half of what one job is to get, all together, so that
// there is something for each that begins.
const slack = 64

// A budget is the memory that the jobs of a node may have together. Each has a file system
// with a bound of its own, as programs write past the daemon. The bounds never come to
// more than the budget: what is free is divided evenly among the jobs that are in use. The
// lock mu guards the set of shares alone.
type budget struct {
	bytes int64
	told  func(used int64) // what all jobs have
	log   *slog.Logger
	begun chan struct{} // has one when a job is in use that was not before
	full  chan struct{} // has one when memory was seen to be full

	arriving atomic.Int64 // bytes of copies that have not come yet

	dividing sync.Mutex // before mu and those of shares; held for system calls that wait for nothing

	mu struct {
		sync.Mutex
		shares map[*share]bool
	}
}

// A share is a job's part of the budget: a file system in memory. The lock guards its
// users, not what it has.
type share struct {
	budget *budget
	dir    string // where it is mounted

	used, bound, want int64 // bytes that it has, may have, and should be allowed; under the budget's dividing

	mu struct {
		sync.Mutex
		users   int       // that may write something
		left    time.Time // when the last of them had gone
		divided bool      // since the first of them came
	}
}

func newBudget(c Config) *budget {
	b := &budget{bytes: c.RAM, told: c.Used, log: c.Log, begun: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	b.mu.shares = make(map[*share]bool)
	return b
}

// add divides with one more share, from the next division on.
func (b *budget) add(s *share) {
	s.budget = b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.shares[s] = true
}

// remove divides no more with a share.
func (b *budget) remove(s *share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.shares, s)
}

// enter says that something may be written into the files of the job, until done is called.
// While the bound is that of a job not in use, enter has it made another.
func (s *share) enter() (done func()) {
	s.mu.Lock()
	s.mu.users++
	if s.mu.users == 1 && time.Since(s.mu.left) > inUseTime {
		s.mu.divided = false
	}
	divided := s.mu.divided
	s.mu.Unlock()
	if !divided {
		s.budget.divide()
		s.mu.Lock()
		s.mu.divided = true
		s.mu.Unlock()
		signal(s.budget.begun)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.users--
		s.mu.left = time.Now()
	})
}

// signal has a channel have one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// inUse reports whether something is written there, or was a moment ago.
func (s *share) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.users > 0 || time.Since(s.mu.left) <= inUseTime
}

// account divides memory, again and again while any job is in use.
func (b *budget) account(ctx context.Context) {
	for ctx.Err() == nil {
		if b.divide() {
			sleep(ctx, divideTime)
			continue
		}
		select {
		case <-ctx.Done():
		case <-b.begun:
		}
	}
}

// divide bounds the file systems of all jobs anew, and reports whether any is in use.
func (b *budget) divide() (inUse bool) {
	used, inUse := b.bindAll()
	if b.told != nil {
		b.told(used)
	}
	if b.over(used) {
		signal(b.full)
	}
	return inUse
}

func (b *budget) bindAll() (used int64, inUse bool) {
	b.dividing.Lock()
	defer b.dividing.Unlock()
	all := b.all()
	users := make(map[*share]bool)
	for _, f := range all {
		f.used, f.bound = f.memory()
		used += f.used
		if f.inUse() {
			users[f] = true
		}
	}
	share := max(0, b.bytes-used) / int64(max(1, len(users)))
	left := b.bytes
	for _, f := range all { // first those that get less
		f.want = f.used
		if users[f] {
			f.want += share
		}
		if less := f.bound - f.want; less > 0 && (!users[f] || less > share/int64(2*len(users))) {
			b.bind(f, f.want)
		}
		left -= f.bound
	}
	for _, f := range all {
		more := min(f.want-f.bound, left)
		if more > b.bytes/slack || more > 0 && f.bound-f.used < b.bytes/slack {
			left -= more
			b.bind(f, f.bound+more)
		}
	}
	return used, len(users) > 0
}

// page is the least size of a file system in memory: with no bytes it would be one
// without a bound.
var page = int64(os.Getpagesize())

// bind gives a job's file system a bound. One that has grown past that meanwhile keeps the
// bound that it has.
func (b *budget) bind(s *share, bytes int64) {
	bytes = max(page, (bytes+page-1)/page*page)
	err := reconfigure(s.dir, strconv.FormatInt(bytes, 10))
	switch {
	case err == nil:
		s.bound = bytes
	case !errors.Is(err, unix.EINVAL):
		b.log.Warn("the memory of a job of the shuffle pool keeps its bound", "dir", s.dir, "cause", err)
	}
}

// reconfigure sets the size of a file system in memory. Unlike mount(2) it does not have
// all processes that watch the table of mounts read it anew.
func reconfigure(dir, size string) error {
	fd, err := unix.Fspick(unix.AT_FDCWD, dir, unix.FSPICK_CLOEXEC|unix.FSPICK_NO_AUTOMOUNT)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.FsconfigSetString(fd, "size", size); err != nil {
		return err
	}
	return unix.FsconfigReconfigure(fd)
}

// memory is the memory that the job has, and may have.
func (s *share) memory() (used, bound int64) {
	var at unix.Statfs_t
	if unix.Statfs(s.dir, &at) != nil || at.Type != unix.TMPFS_MAGIC {
		return 0, 0
	}
	return int64(at.Blocks-at.Bfree) * at.Bsize, int64(at.Blocks) * at.Bsize
}

// all are the shares of all jobs.
func (b *budget) all() []*share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.mu.shares))
}

// over reports whether so much in memory is to be relieved.
func (b *budget) over(used int64) bool { return used > b.bytes/4*3 }

// used is the memory that all jobs have.
func (b *budget) used() (sum int64) {
	for _, s := range b.all() {
		used, _ := s.memory()
		sum += used
	}
	return sum
}
