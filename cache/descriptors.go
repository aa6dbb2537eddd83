package cache

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// descriptors has idle slabs in memory do without open files. There may be very many
// of them, and a process has few descriptors and mappings. So where many are open, a
// fill has one that is idle give up its own before it opens another: a small batch is
// moved to a slot, from where an open copies it into a file again; of a
// larger one, which the kernel knows as a backing file anyway, the descriptor is
// closed, and an open needs none.
//
// It takes the cache's lock to check an idle batch out and in, and not in between.
type descriptors struct {
	*tiers
	mu *guarded
}

// park has one idle batch give up its descriptor and mapping, and reports whether
// there was one.
func (d *descriptors) park() bool {
	d.mu.Lock()
	id := d.mu.slabs.idle.nextFile()
	if id == 0 || d.mu.life.closed {
		d.mu.Unlock()
		return false
	}
	e := d.mu.checkOut(id)
	d.mu.Unlock()
	if e.size > slotBytes {
		ok := e.backing != 0 && d.ram.detach(e.ram)
		d.checkIn(e)
		return ok
	}
	slot, err := d.ram.store(e.ram.mem)
	if err != nil {
		d.checkIn(e)
		return false
	}
	left := form{ram: e.ram, backing: e.backing, size: e.size, dense: e.dense}
	if !d.checkIn(e, form{inSlot: true, number: slot, size: e.size, dense: e.dense}) {
		left = form{inSlot: true, number: slot, size: e.size}
	}
	d.tiers.discard(&entry{batch: batch{form: left}})
	return true
}

func (d *descriptors) checkIn(e *entry, other ...form) (taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.checkIn(e, other...)
}

// parkSome parks a few batches if many files are open: more than one, as what is read
// without a descriptor gets one again.
func (d *descriptors) parkSome() {
	for range 4 {
		if !d.ram.crowded() || !d.park() {
			return
		}
	}
}

// bytes are the bytes of a file that is held, which gets descriptor and mapping again.
func (d *descriptors) bytes(f *ramFile) (mem []byte, err error) {
	for {
		mem, err = d.ram.bytes(f)
		if !d.findFile(err) {
			break
		}
	}
	d.parkSome()
	return mem, err
}

// content is the bytes of a batch in memory that is the caller's alone, until done.
func (d *descriptors) content(e *entry) (mem []byte, done func(), err error) {
	if !e.inSlot {
		mem, err = d.bytes(e.ram)
		return mem, func() {}, err
	}
	room, err := unix.Mmap(-1, 0, slotBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("room for a small slab: %w", err)
	}
	done = func() { unix.Munmap(room) }
	if err := d.ram.slotFile.get(e.number, room[:e.size]); err != nil {
		done()
		return nil, nil, err
	}
	return room[:e.size], done, nil
}

// discard gives up a slab that is in the cache no more. The kernel may keep its file
// for the backing id alone: it gets a descriptor before, by which it is seen whether a
// rank still maps it.
func (d *descriptors) discard(e *entry) {
	if e.ram != nil {
		if err := d.attach(e.ram); err != nil {
			d.config.Log.Warn("slab given up unseen: a mapping of it is not counted any more", "cause", err)
		}
	}
	d.tiers.discard(e)
}

// attach gives a file its descriptor again.
func (d *descriptors) attach(f *ramFile) (err error) {
	for {
		if err = d.ram.attach(f); !d.findFile(err) {
			return err
		}
	}
}

// findFile has an idle or spare file give up its descriptor, if one lacks, and reports
// whether that is worth another try.
func (d *descriptors) findFile(lack error) bool {
	return lacksFiles(lack) && (d.ram.closeSpare() || d.park())
}
