package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"rankfs/meta"
)

// A Tier is the tier of slabs in directories of local disks. All methods may
// be called concurrently. The lock guards the keys that are being written; no disk is used
// under it.
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
// earlier daemons left there. One whose disk has a fault is suspended, as it would be later; one that
// cannot be a directory of a tier, or that another daemon uses, is an error.
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
	err = c.enter(func(dir Dir) error {
		d := newDirectory(dir, c, systems)
		t.dirs = append(t.dirs, d)
		err := d.enter(true)
		if err != nil {
			d.health.Fail(fmt.Errorf("nvme directory %s: %w", d.path, err), true)
		}
		d.seeWritable()
		return err
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	for _, d := range t.dirs {
		t.tasks.Go(func() { d.attend(ctx) })
	}
	return t, nil
}

// Has reports whether the slab of k is there, without touching a disk.
func (t *Tier) Has(k Key) bool {
	return slices.ContainsFunc(t.dirs, func(d *directory) bool { return d.reader.has(k) })
}

// Open opens the slab of k, or returns nil if there is none with the right bytes. An
// error is not about the slab: the process is out of descriptors.
func (t *Tier) Open(k Key) (*Slab, error) {
	for _, d := range t.dirs {
		if s, err := d.reader.open(k); s != nil || err != nil {
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
		if ok, err := d.reader.copyOf(k, mem); ok || err != nil {
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
	return t.write(k, int64(len(mem)), func(f *File) (uint64, error) {
		return sum, f.copyOut(mem)
	}, may)
}

// Fill makes the slab of k, unless it is there: fill writes all of mem, which
// is the file, mapped. It is called again for another directory if the first
// fails. Only slabs that may go make way for it; nil is all. ErrNoRoom is wrapped
// if no directory takes it.
func (t *Tier) Fill(k Key, size int64, fill func(mem []byte) error, may func(Key) bool) error {
	return t.write(k, size, func(f *File) (uint64, error) {
		return fillMapped(k, size, f.file.Bytes, fill)
	}, may)
}

func (t *Tier) write(k Key, size int64, produce producer, may spare) error {
	if !t.begin(k) {
		return meta.Worded(ErrNoRoom, "write nvme slab: it is being written already")
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

// Room is the number of bytes that slabs may take of all directories: no more than is there
// of one that is not written to, nothing of one that is not read; and nowhere what
// other files have, nor what is to stay free, as it was when a slab was last
// written.
func (t *Tier) Room() (bytes int64) {
	for _, d := range t.dirs {
		bytes += d.room()
	}
	return bytes
}

// Drop removes the slab of k, if there is one. A reader that has it open keeps it.
func (t *Tier) Drop(k Key) {
	for _, d := range t.dirs {
		if s := d.slabs.dropKey(k); s != nil {
			_ = d.evictor.remove(s)
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
