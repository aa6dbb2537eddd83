package cache

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/cache/stall"
)

// There may be very many batches in memory, and a process has few descriptors and
// mappings. So where there are plenty, fills have one that nobody has open give up
// its own before they make another: a small batch goes into a slot of the pool,
// from where an open copies it into a file again; of a larger one, which the kernel
// knows as a backing file anyway, the descriptor is closed, and an open needs none.

// descriptors has idle slabs do without open files.
type descriptors struct {
	*tiers
	mu *guarded
}

// park has one batch that nobody has open give up its descriptor and mapping, and
// reports whether there was one.
func (d *descriptors) park() bool {
	d.mu.Lock()
	id := d.mu.slabs.idle.nextFile()
	if id == 0 || d.mu.closed {
		d.mu.Unlock()
		return false
	}
	e := d.mu.lift(id)
	d.mu.Unlock()
	if e.size > slotBytes {
		ok := e.backing != 0 && d.ram.detach(e.ram)
		d.mu.parked(e)
		return ok
	}
	slot, err := d.ram.store(e.ram.mem)
	if err != nil {
		d.mu.parked(e)
		return false
	}
	own := form{ram: e.ram, backing: e.backing, size: e.size, dense: e.dense}
	if !d.mu.parked(e, form{pooled: true, number: slot, size: e.size, dense: e.dense}) {
		own = form{pooled: true, number: slot, size: e.size}
	}
	d.discard(&entry{kept: kept{form: own}})
	return true
}

// parkSome has batches give up theirs if there are plenty: more than one, as what is
// read without a descriptor gets one again.
func (d *descriptors) parkSome() {
	for range 4 {
		if !d.ram.crowded() || !d.park() {
			return
		}
	}
}

// bytes are those of a file that is held, which gets descriptor and mapping again.
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

// attach gives a file its descriptor again.
func (d *descriptors) attach(f *ramFile) (err error) {
	for {
		if err = d.ram.attach(f); !d.findFile(err) {
			return err
		}
	}
}

// findFile has somebody give up a descriptor, if one lacks, and reports whether
// that is worth another try.
func (d *descriptors) findFile(lack error) bool {
	return lacksFiles(lack) && (d.ram.thin() || d.park())
}

// lift takes a batch off the shelf for a while: who opens it meanwhile waits for that,
// as for a fill. mu is held.
func (g *guarded) lift(id uint32) *entry {
	e := &entry{kept: g.slabs.idle.take(id), done: make(chan struct{})}
	g.slabs.entries[e.key] = e
	g.slabs.begin(e, &g.queue.others, stall.Admission)
	return e
}

// parked ends what lift began, the batch in another form if it has one and nobody
// has come meanwhile, which it reports. Who has come for one in a slot is served by
// a worker.
func (g *guarded) parked(e *entry, other ...form) (taken bool) {
	g.Lock()
	defer g.Unlock()
	if e.waiters > 0 && e.pooled {
		g.queue.demand = append(g.queue.demand, e)
		g.queue.wake.Signal()
		return false
	}
	e.state, e.clock = ready, nil
	close(e.done)
	if e.waiters > 0 {
		return false
	}
	for _, f := range other {
		e.form, taken = f, true
	}
	delete(g.slabs.entries, e.key)
	g.eviction.lay(e.kept)
	return taken
}

// unpool has an open fill its entry from a slot itself: it takes less than telling
// a worker. It reports whether there was room for that; if not, workers go on.
func (w *workers) unpool(e *entry) bool {
	start := time.Now()
	err := w.fillRAM(e, true)
	w.finish(e, err, time.Since(start), true)
	return err == nil
}

// fromPool fills a file from a slot, which is given back.
func (w *workers) fromPool(e *entry) error {
	err := w.ram.pool.get(e.number, e.ram.mem)
	if err == nil {
		err = w.register(e)
	} else {
		w.giveBack(e)
	}
	if err != nil {
		return err
	}
	w.ram.unstore(e.number, e.size)
	e.pooled, e.number, e.from = false, 0, policy.RAM
	return nil
}

// content is the bytes of a batch in memory that is the caller's alone, until done.
func (d *descriptors) content(e *entry) (mem []byte, done func(), err error) {
	if !e.pooled {
		mem, err = d.bytes(e.ram)
		return mem, func() {}, err
	}
	room, err := unix.Mmap(-1, 0, slotBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("room for a small slab: %w", err)
	}
	done = func() { unix.Munmap(room) }
	if err := d.ram.pool.get(e.number, room[:e.size]); err != nil {
		done()
		return nil, nil, err
	}
	return room[:e.size], done, nil
}

// crowded reports whether there are more files than are kept for nobody.
func (r *ram) crowded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files() > r.plenty
}

// store copies a batch into a slot of the pool.
func (r *ram) store(mem []byte) (slot uint32, err error) {
	size := int64(len(mem))
	r.mu.Lock()
	discard, err := r.set(pages(size), 0)
	if err == nil {
		r.mu.slots++
	}
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	if err != nil {
		return 0, err
	}
	if slot, err = r.pool.put(mem); err != nil {
		r.freed(size)
	}
	return slot, err
}

// unstore gives a slot back.
func (r *ram) unstore(slot uint32, size int64) {
	r.pool.give(slot, size)
	r.freed(size)
}

func (r *ram) freed(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.slots--
	r.mu.used -= pages(size)
}

// A handle is what a file without a name or descriptor is opened by again, as long
// as the kernel keeps it for somebody.
type handle struct {
	kind int32
	id   [12]byte // as tmpfs has it: generation and inode number
}

// detach closes the descriptor and the mapping of a file that the kernel knows as
// a backing file and that nobody else uses.
func (r *ram) detach(f *ramFile) bool {
	if !r.handles || !f.identify() {
		return false
	}
	f.close()
	f.fd, f.mem = -1, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed++
	return true
}

// identify notes the handle of a file.
func (f *ramFile) identify() bool {
	h, _, err := unix.NameToHandleAt(f.fd, "", unix.AT_EMPTY_PATH)
	if err != nil || h.Size() != len(f.file.id) {
		return false
	}
	f.file.kind = h.Type()
	copy(f.file.id[:], h.Bytes())
	return true
}

// canReopen finds out whether files can be opened by their handles: not everywhere
// may root do that.
func (r *ram) canReopen() bool {
	f, err := r.create(1)
	if err != nil {
		return false
	}
	defer f.close()
	if !f.identify() {
		return false
	}
	fd, err := r.reopen(f)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// attach gives a file its descriptor again.
func (r *ram) attach(f *ramFile) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.fd >= 0 {
		return nil
	}
	fd, err := r.reopen(f)
	if err != nil {
		return err
	}
	f.fd = fd
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed--
	return nil
}

func (r *ram) reopen(f *ramFile) (fd int, err error) {
	fd, err = unix.OpenByHandleAt(int(r.root.Fd()), unix.NewFileHandle(f.file.kind, f.file.id[:]), unix.O_RDWR|unix.O_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open ram slab again by its handle: %w", err)
	}
	if err := disks.Affordable(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bytes are those of a file, which is mapped if it was not.
func (r *ram) bytes(f *ramFile) ([]byte, error) {
	if err := r.attach(f); err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.mem == nil && f.size > 0 {
		if err := f.mapIt(); err != nil {
			return nil, fmt.Errorf("map ram slab: %w", err)
		}
	}
	return f.mem, nil
}
