package disks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A directory is one directory of a tier. Its invariants whenever mu is free:
//
//   - A slab is in slabs for as long as its name is on the disk, and listed there
//     for as long as it may be opened; then it is in place. It is in held if it has
//     users, or is not listed: it is on its way in or out.
//   - used is at least what its files take: slabs, unfinished files, dying files, the
//     index and reserved files. A file is counted before it is made, and until its
//     blocks are free. others and claims together never exceed the budget.
//   - place is nil, or what the path led to when it was opened. A slab is read and
//     removed in its own place, even if the path means another by then.
//   - A directory whose failure has a cause is suspended: nothing is written to it
//     until the time is over. If it is unreadable it is not read either, until
//     retry has found that it can be.
//
// While mu is held no other lock is taken, and no system call goes to the disk. Those
// calls run as jobs, which may be given up (job.go), but for one between the jobs of
// a write: how much the file system has free.
type directory struct {
	path    string
	budget  int64
	config  Config
	log     *slog.Logger
	systems *fileSystems
	jobs    sync.WaitGroup
	failing chan struct{} // one token: it is not to be read
	closing atomic.Bool

	mu struct {
		sync.Mutex
		origin   *origin // of the last place; nil if there was none
		place    *place  // nil if it could not be opened
		slabs    *table
		held     map[uint32]*slab
		used     int64 // bytes of all slabs, of those being written and of dying ones, of the index, and reserved
		others   int64 // of used: reserved for what is not a slab
		claims   int64 // bytes that are to be reserved: no slab may take them
		index    int64 // of used: the index file's
		dying    []dying
		looking  int64 // bytes of dying files, as far as is known: sweep is finding out
		serial   uint64
		removing int           // slabs
		removed  chan struct{} // closed when one of them is gone
		change   uint64        // counts what makes the index stale
		saved    uint64        // change, when the index was written
		failure  failure
		full     time.Time // until then the file system counts as full
		stuck    int       // jobs that were given up and have not come back
		count    counters
	}
}

type counters struct{ damaged, lost, failed, hashed, hashedBytes uint64 }

// A place is where a directory's path led when it was opened.
type place struct {
	root    *os.Root
	parts   string // how names of unfinished files begin
	lock    *os.File
	origin  origin
	ino     uint64
	block   int64
	pending *atomic.Int64 // bytes to be written on this file system that have no blocks yet
	most    atomic.Int64  // that the directory may use as its file system was found last
	listed  chan struct{} // closed when its names have been seen
}

// An origin is what is known of a directory that is gone.
type origin struct {
	dev     uint64
	mounted bool // the very directory is where its file system is mounted
}

// fileSystems are shared by directories: what one is about to write is not
// free for another.
type fileSystems struct {
	mu      sync.Mutex
	pending map[uint64]*atomic.Int64
}

func (f *fileSystems) of(dev uint64) *atomic.Int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending[dev] == nil {
		f.pending[dev] = new(atomic.Int64)
	}
	return f.pending[dev]
}

func newDirectory(dir Dir, c Config, systems *fileSystems) *directory {
	d := &directory{
		path: dir.Path, budget: dir.Bytes, config: c, log: c.Log, systems: systems,
		failing: make(chan struct{}, 1),
	}
	d.mu.slabs, d.mu.held, d.mu.removed = newTable(), make(map[uint32]*slab), make(chan struct{})
	return d
}

// enter opens the directory and finds what is in it.
func (d *directory) enter(create bool) error {
	p, err := watch(d, func(*job) (*place, error) { return d.openPlace(create) }, (*place).close)
	if err != nil {
		return err
	}
	if d.load(p) {
		d.jobs.Go(func() { d.seeNames(p) }) // meanwhile it is read, but not written
		return nil
	}
	return d.list(p)
}

func (d *directory) openPlace(create bool) (*place, error) {
	if create {
		if err := os.MkdirAll(d.path, 0700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	p := &place{root: root, parts: partPrefix + rand.Text() + "-", listed: make(chan struct{})}
	p.most.Store(math.MaxInt64)
	if err := p.fill(d.systems); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *place) fill(systems *fileSystems) (err error) {
	// Opened to read, or the disk could not be turned read-only under us.
	p.lock, err = p.root.OpenFile(".lock", os.O_RDONLY|os.O_CREATE, 0600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("%w: another rankfs uses it; give each daemon a directory of its own", meta.ErrBusy)
	}
	self, err := p.root.Stat(".")
	if err != nil {
		return err
	}
	p.origin.dev, p.ino = identity(self)
	p.origin.mounted = isMounted(p.root.Name(), p.origin.dev)
	p.pending = systems.of(p.origin.dev)
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(p.lock.Fd()), &s); err != nil {
		return err
	}
	p.block = max(s.Bsize, 512)
	return nil
}

func identity(info fs.FileInfo) (dev, ino uint64) {
	s := info.Sys().(*unixStat)
	return s.Dev, s.Ino
}

// isMounted reports whether path, which is on dev, is where dev is mounted.
func isMounted(path string, dev uint64) bool {
	above, err := os.Stat(filepath.Join(path, ".."))
	if err != nil {
		return false
	}
	other, _ := identity(above)
	return other != dev
}

func (p *place) close() {
	if p.lock != nil {
		p.lock.Close()
	}
	p.root.Close()
}

// attend does what is not asked for: it writes the index now and then, and
// looks after a directory that fails.
func (d *directory) attend(ctx context.Context) {
	tick := time.NewTicker(d.config.Save)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.failing:
			d.retry(ctx)
		case <-tick.C:
			d.sweep()
			d.miss()
			if err := d.saveIndex(); err != nil {
				d.log.Debug("nvme index not written", "dir", d.path, "cause", err)
			}
		}
	}
}

// miss checks whether the path still leads to the place. If not, the directory lets
// go of the disk, so that an admin can take it out.
func (d *directory) miss() {
	d.mu.Lock()
	p, unreadable := d.mu.place, d.unreadable()
	d.mu.Unlock()
	if unreadable {
		return
	}
	if err := d.do(func(*job) error { return p.probe(d.path) }); err != nil {
		d.fail(err, true)
	}
}

// close writes the index and gives up the directory, after waiting for what
// its disk is asked.
func (d *directory) close() error {
	d.closing.Store(true)
	idle := make(chan struct{})
	go func() { d.jobs.Wait(); close(idle) }()
	timer := time.NewTimer(d.config.Patience)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		return fmt.Errorf("close nvme directory %s: %w", d.path, errStuck)
	}
	var err error
	if d.healthy() {
		err = d.saveIndex()
	}
	d.mu.Lock()
	p, mapped := d.mu.place, d.mu.dying
	d.mu.place, d.mu.dying = nil, nil
	d.mu.Unlock()
	for _, y := range mapped {
		y.file.Close()
	}
	if p != nil {
		p.close()
	}
	if errors.Is(err, ErrNoRoom) {
		err = nil // the next daemon looks through the names
	}
	return err
}
