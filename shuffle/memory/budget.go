package memory

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

// A Budget is the memory that the jobs of a node may have together. Each has a file system
// with a bound of its own, as programs write past the daemon. The bounds never come to
// more than the budget: what is free is divided evenly among the jobs that are in use. The
// lock mu guards the set of shares alone.
type Budget struct {
	bytes int64
	told  func(used int64) // what all jobs have
	log   *slog.Logger
	begun chan struct{} // has one when a job is in use that was not before
	full  chan struct{} // has one when memory was seen to be full

	arriving atomic.Int64 // bytes of copies that have not come yet

	dividing sync.Mutex // before mu and those of shares; held for system calls that wait for nothing

	mu struct {
		sync.Mutex
		shares map[*Share]bool
	}
}

// A Share is a job's part of the budget: a file system in memory. The lock guards its
// users, not what it has.
type Share struct {
	budget *Budget
	Dir    string // where it is mounted

	used, bound, want int64 // bytes that it has, may have, and should be allowed; under the budget's dividing

	mu struct {
		sync.Mutex
		users   int       // that may write something
		left    time.Time // when the last of them had gone
		divided bool      // since the first of them came
	}
}

// New is one of so many bytes. Whenever it is divided, told is called, if there is one, with
// what all jobs have.
func New(bytes int64, told func(used int64), log *slog.Logger) *Budget {
	b := &Budget{bytes: bytes, told: told, log: log, begun: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	b.mu.shares = make(map[*Share]bool)
	return b
}

// Add divides with one more share, from the next division on.
func (b *Budget) Add(s *Share) {
	s.budget = b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.shares[s] = true
}

// Remove divides no more with a share.
func (b *Budget) Remove(s *Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.shares, s)
}

// Enter says that something may be written into the files of the job, until done is called.
// While the bound is that of a job not in use, Enter has it made another.
func (s *Share) Enter() (done func()) {
	s.mu.Lock()
	s.mu.users++
	if s.mu.users == 1 && time.Since(s.mu.left) > inUseTime {
		s.mu.divided = false
	}
	divided := s.mu.divided
	s.mu.Unlock()
	if !divided {
		s.budget.Divide()
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
func (s *Share) inUse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.users > 0 || time.Since(s.mu.left) <= inUseTime
}

// Account divides memory, again and again while any job is in use.
func (b *Budget) Account(ctx context.Context) {
	for ctx.Err() == nil {
		if b.Divide() {
			wait(ctx, time.After(divideTime))
		} else {
			wait(ctx, b.begun)
		}
	}
}

// wait waits for a channel to have one, or for the end of ctx.
func wait[T any](ctx context.Context, c <-chan T) {
	select {
	case <-ctx.Done():
	case <-c:
	}
}

// Divide bounds the file systems of all jobs anew, and reports whether any is in use.
func (b *Budget) Divide() (inUse bool) {
	used, inUse := b.bindAll()
	if b.told != nil {
		b.told(used)
	}
	if b.isOver(used) {
		signal(b.full)
	}
	return inUse
}

func (b *Budget) bindAll() (used int64, inUse bool) {
	b.dividing.Lock()
	defer b.dividing.Unlock()
	all := b.all()
	users := make(map[*Share]bool)
	for _, f := range all {
		f.used, f.bound = f.Memory()
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

// Page is the least size of a file system in memory: with no bytes it would be one
// without a bound.
func Page() int64 { return int64(os.Getpagesize()) }

// bind gives a job's file system a bound. One that has grown past that meanwhile keeps the
// bound that it has.
func (b *Budget) bind(s *Share, bytes int64) {
	bytes = max(Page(), (bytes+Page()-1)/Page()*Page())
	err := reconfigure(s.Dir, strconv.FormatInt(bytes, 10))
	switch {
	case err == nil:
		s.bound = bytes
	case !errors.Is(err, unix.EINVAL):
		b.log.Warn("the memory of a job of the shuffle pool keeps its bound", "dir", s.Dir, "cause", err)
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

// Memory is the memory that the job has, and may have.
func (s *Share) Memory() (used, bound int64) {
	var at unix.Statfs_t
	if unix.Statfs(s.Dir, &at) != nil || at.Type != unix.TMPFS_MAGIC {
		return 0, 0
	}
	return int64(at.Blocks-at.Bfree) * at.Bsize, int64(at.Blocks) * at.Bsize
}

// all are the shares of all jobs.
func (b *Budget) all() []*Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.mu.shares))
}

// isOver reports whether so much in memory is to be relieved.
func (b *Budget) isOver(used int64) bool { return used > b.bytes/4*3 }

// Over reports whether memory is to be relieved.
func (b *Budget) Over() bool { return b.isOver(b.Used()) }

// Roomy reports whether memory was relieved far enough.
func (b *Budget) Roomy() bool { return b.Used() <= b.bytes/2 }

// Full has one when memory was seen to be full.
func (b *Budget) Full() <-chan struct{} { return b.full }

// Used is the memory that all jobs have.
func (b *Budget) Used() (sum int64) {
	for _, s := range b.all() {
		used, _ := s.Memory()
		sum += used
	}
	return sum
}
