package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/meta"
)

// ErrNoRoom: no directory can take the slab now. It wraps meta.ErrNoSpace.
var ErrNoRoom = meta.Worded(meta.ErrNoSpace, "no room in any tier now")

// A Dir is a directory for slabs and its budget in real bytes: blocks on disk,
// those of deleted slabs too for as long as a rank maps them.
type Dir struct {
	Path  string
	Bytes int64
}

// Config says what a tier may use.
type Config struct {
	Dirs  []Dir
	Floor Floor // of each file system, to be left free
	// First reports whether a is to be given up before b, of slabs that were
	// used long ago. If nil, the one used longest ago is. It may be called
	// concurrently.
	First func(a, b Key) bool
	Log   *slog.Logger

	// Suspend is how long a directory that failed is left alone: long enough
	// for a person to see why, short beside an epoch.
	Suspend time.Duration
	// Patience is how long a disk may not answer. One that is healthy takes
	// milliseconds, a queue of other people's writes some seconds.
	Patience time.Duration
	// Trust is how long after a slab was hashed it is not hashed again, even
	// if it has left the page cache: one that is larger than memory would be
	// read through at each open.
	Trust time.Duration
	// Save is how often the index is written if anything has changed. What
	// changed since is found by looking through the names.
	Save time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Suspend == 0 {
		c.Suspend = 30 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Trust == 0 {
		c.Trust = time.Minute
	}
	if c.Save == 0 {
		c.Save = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	seen := make(map[string]bool)
	for _, d := range c.Dirs {
		if d.Bytes <= 0 {
			return c, fmt.Errorf("nvme directory %s: give it a budget above zero", d.Path)
		}
		path := filepath.Clean(d.Path)
		if seen[path] {
			return c, fmt.Errorf("nvme directory %s is given twice: give it once, with one budget", d.Path)
		}
		seen[path] = true
	}
	return c, nil
}

// A Floor is how much of a file system stays free: the larger of the two.
type Floor struct {
	Bytes   int64
	Percent float64 // of the file system's size
}

func (f Floor) of(total int64) int64 {
	return max(f.Bytes, int64(f.Percent/100*float64(total)))
}

// A Tier is the tier of slabs in directories of local disks. All methods may
// be called concurrently.
type Tier struct {
	dirs  []*directory
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu struct {
		sync.Mutex
		writing map[Key]struct{}
	}
}

// New opens the directories, making those that do not exist, and finds what
// earlier daemons left there. One that fails is suspended, as it would be later, unless
// all do, or another daemon uses it.
func New(c Config) (*Tier, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	t := new(Tier)
	t.mu.writing = make(map[Key]struct{})
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	systems := &fileSystems{pending: make(map[uint64]*atomic.Int64)}
	var errs []error
	fatal := false
	for _, dir := range c.Dirs {
		d := newDirectory(dir, c, systems)
		t.dirs = append(t.dirs, d)
		if err := d.enter(true); err != nil {
			err = fmt.Errorf("nvme directory %s: %w", d.path, err)
			errs = append(errs, err)
			fatal = fatal || errors.Is(err, meta.ErrBusy)
			d.fail(err, true)
		}
	}
	if fatal || len(errs) > 0 && len(errs) == len(t.dirs) {
		return nil, errors.Join(append(errs, t.Close())...)
	}
	for _, d := range t.dirs {
		t.tasks.Go(func() { d.attend(ctx) })
	}
	return t, nil
}

// Has reports whether the slab of k is there, without touching a disk.
func (t *Tier) Has(k Key) bool {
	return slices.ContainsFunc(t.dirs, func(d *directory) bool { return d.has(k) })
}

// Open opens the slab of k, or returns nil if there is none with the right bytes. An
// error is not about the slab: the process is out of descriptors.
func (t *Tier) Open(k Key) (*Slab, error) {
	for _, d := range t.dirs {
		if s, err := d.open(k); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// Copy fills mem with the slab of k, and reports whether there is one of that size
// with the right bytes, all of which are verified on their way to mem. If not, the
// content of mem is undefined, and no goroutine writes to it any more, not even one
// whose disk is stuck. An error means the same as in Open.
func (t *Tier) Copy(k Key, mem []byte) (ok bool, err error) {
	for _, d := range t.dirs {
		if ok, err := d.copyOf(k, mem); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// Put makes the slab of k from mem, unless it is there. What mem holds must
// not change before Put returns. Only slabs that may go make way for it; nil is
// all. ErrNoRoom is wrapped if no directory takes it.
func (t *Tier) Put(k Key, mem []byte, may func(Key) bool) error {
	if t.Has(k) {
		return nil
	}
	sum := sumOf(k, mem)
	return t.write(k, int64(len(mem)), func(d *directory, f *os.File) (uint64, error) {
		return sum, d.copyTo(f, mem)
	}, may)
}

// Fill makes the slab of k, unless it is there: fill writes all of mem, which
// is the file, mapped. It is called again for another directory if the first
// fails. Only slabs that may go make way for it; nil is all. ErrNoRoom is wrapped
// if no directory takes it.
func (t *Tier) Fill(k Key, size int64, fill func(mem []byte) error, may func(Key) bool) error {
	return t.write(k, size, func(_ *directory, f *os.File) (uint64, error) {
		return fillMapped(k, size, f, fill)
	}, may)
}

func (t *Tier) write(k Key, size int64, produce producer, may spare) error {
	if !t.begin(k) {
		return fmt.Errorf("write nvme slab: it is being written already: %w", ErrNoRoom)
	}
	defer t.end(k)
	if t.Has(k) {
		return nil
	}
	var refusals []error
	for _, d := range t.byRoom() {
		err := d.write(k, size, produce, may)
		if err == nil || !errors.Is(err, ErrNoRoom) {
			return err
		}
		refusals = append(refusals, err)
	}
	return fmt.Errorf("write nvme slab: %w", errors.Join(refusals...))
}

func (t *Tier) begin(k Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, busy := t.mu.writing[k]
	t.mu.writing[k] = struct{}{}
	return !busy
}

func (t *Tier) end(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.writing, k)
}

// byRoom are the directories, those with the most budget left first and those
// that are suspended last: they will say why.
func (t *Tier) byRoom() []*directory {
	type candidate struct {
		d    *directory
		left int64
	}
	all := make([]candidate, len(t.dirs))
	for i, d := range t.dirs {
		all[i] = candidate{d, d.left()}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.left, a.left) })
	dirs := make([]*directory, len(all))
	for i, c := range all {
		dirs[i] = c.d
	}
	return dirs
}

// Drop removes the slab of k, if there is one. A reader that has it open keeps it.
func (t *Tier) Drop(k Key) {
	for _, d := range t.dirs {
		d.mu.Lock()
		s := d.hold(d.find(k))
		leaves := d.drop(s)
		d.mu.Unlock()
		if leaves {
			_ = d.remove(s)
		}
	}
}

// Close writes the indexes and lets go of the directories. Slabs that are open
// stay readable.
func (t *Tier) Close() error {
	t.stop()
	t.tasks.Wait()
	var errs []error
	for _, d := range t.dirs {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}
