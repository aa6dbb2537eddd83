package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// A directory is one directory of a tier: what its parts know, put together. It has no
// lock of its own; what each part guards, and when it may be taken, is said where the
// part's type begins.
//
// Calls that its disk may never answer are work of meta/slowdisk, but for one amid a write: how
// much the file system has free.
type directory struct {
	path     string
	config   Config
	log      *slog.Logger
	systems  *fileSystems
	budget   *diskdir.Budget
	health   *health
	slabs    *slabs
	unlinked *unlinked
	evictor  *evictor
	index    *index
	lister   *lister
	reader   *reader
}

func newDirectory(dir Dir, c Config, systems *fileSystems) *directory {
	d := &directory{path: dir.Path, config: c, log: c.Log, systems: systems}
	d.budget = &diskdir.Budget{Max: dir.Bytes}
	d.health = newHealth(dir.Path, c)
	d.slabs = newSlabs(d.budget)
	d.unlinked = &unlinked{budget: d.budget, health: d.health}
	d.evictor = &evictor{
		first: c.First, floor: c.Floor, budget: d.budget, health: d.health, slabs: d.slabs, unlinked: d.unlinked,
	}
	d.evictor.mu.removed = make(chan struct{})
	d.index = &index{slabs: d.slabs, health: d.health, evictor: d.evictor}
	d.lister = &lister{slabs: d.slabs, health: d.health, evictor: d.evictor}
	d.reader = &reader{slabs: d.slabs, health: d.health, evictor: d.evictor, trust: c.Trust}
	return d
}

// enter opens the directory and finds what is in it.
func (d *directory) enter(create bool) error {
	p, err := watch(d.health, slowdisk.Once(func() (*place, error) { return openPlace(d.path, create, d.systems) }), func(p *place) { p.Close() })
	if err != nil {
		return err
	}
	d.slabs.enter(p)
	if d.index.load(p) {
		d.health.listing.Go(func() { d.lister.seeNames(p) }) // meanwhile it is read, but not written
		return nil
	}
	return d.lister.list(p)
}

// writable waits until the names of the directory have been seen, so that all
// that is in it counts, and returns its place unless it is suspended.
func (d *directory) writable() (*place, error) {
	p, err := d.slabs.place(), d.health.Suspended()
	if err != nil || p == nil {
		return nil, meta.Worded(ErrNoRoom, "nvme directory suspended: %s: %w", d.path, cmp.Or(err, errUnreadable))
	}
	timer := time.NewTimer(d.config.Patience)
	defer timer.Stop()
	select {
	case <-p.listed:
		return p, nil
	case <-timer.C:
		return nil, meta.Worded(ErrNoRoom, "nvme directory %s: its files are still being looked through", d.path)
	}
}

// left is the budget that is not used; less than nothing if nothing is to be
// written.
func (d *directory) left() int64 {
	if d.slabs.place() == nil || d.health.Suspended() != nil {
		return -1
	}
	return max(0, d.budget.Left())
}

// room is the room for slabs: of that used already, if nothing is written.
func (d *directory) room() int64 {
	p, err := d.reader.readable()
	if err != nil {
		return 0
	}
	used, others := d.budget.Use()
	room := d.budget.Beside()
	if d.health.Suspended() != nil {
		room = used - others
	}
	return max(0, min(room, p.max.Load()-others)-d.slabs.indexBytes())
}

// attend does what is not asked for: it writes the index now and then, and
// looks after a directory that fails.
func (d *directory) attend(ctx context.Context) {
	tick, look := time.NewTicker(d.config.Save), time.NewTicker(d.config.Suspend)
	defer tick.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.health.Failing:
			d.retry(ctx)
		case <-look.C:
			d.seeWritable()
		case <-tick.C:
			d.unlinked.sweep()
			d.reader.miss()
			if err := d.index.save(); err != nil {
				d.log.Debug("nvme index not written", "dir", d.path, "cause", err)
			}
		}
	}
}

// retry tries a directory that is not to be read every so often, until it can be.
func (d *directory) retry(ctx context.Context) {
	for {
		if d.health.Unreadable() == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.config.Suspend):
		}
		err := d.revive()
		if err == nil {
			d.health.Heal()
			d.seeWritable()
			return
		}
		d.health.Fail(err, true)
	}
}

// seeWritable finds out whether files can be made in a directory that is read, so that one in
// which none can is said to be so though nothing is written there.
func (d *directory) seeWritable() {
	p, err := d.reader.readable()
	if err != nil {
		return
	}
	err = d.health.call(p.Writable)
	if err == nil || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		d.health.MayWrite(err)
	}
}

// revive finds out whether the directory can be used again, and enters it anew
// if it is another one by now.
func (d *directory) revive() error {
	if d.health.Disk.Silent() {
		return errStuck
	}
	p, last := d.slabs.where()
	if p != nil {
		err := d.health.call(p.Probe)
		if again := err == nil && !p.seen(); !again && !errors.Is(err, diskdir.ErrGone) {
			return err
		}
		// Files that ranks hold open there no longer count.
		d.slabs.leave()
		p.Close()
	}
	if last != nil {
		if err := d.health.call(last.MayReturn); err != nil {
			return err
		}
	}
	if err := d.enter(false); err != nil {
		return fmt.Errorf("nvme directory %s: %w", d.path, err)
	}
	return nil
}

// close writes the index and gives up the directory, after waiting for what
// its disk is asked.
func (d *directory) close() error {
	d.lister.closing.Store(true)
	if err := d.health.idle(); err != nil {
		return err
	}
	var err error
	if d.slabs.place() != nil && d.health.Suspended() == nil {
		err = d.index.save()
	}
	p := d.slabs.close()
	d.unlinked.close()
	if p != nil {
		p.Close()
	}
	if errors.Is(err, ErrNoRoom) {
		err = nil // the next daemon looks through the names
	}
	return err
}
