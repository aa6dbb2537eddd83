package cache

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
)

// ram is the tier of slabs in memory: unnamed files on a private tmpfs with
// huge pages.
//
// The daemon keeps its own writable mapping of each file as long as there are not
// many. Filling a file that was used before is then a plain copy into pages
// that are there and mapped, 25 GB/s where a fresh file costs its zeroing too.
// That mapping does not stand in the way of the write lease.
//
// Where there are many, those that nobody has open lose mapping and descriptor:
// see park.go.
type ram struct {
	budget atomic.Int64
	dir    *os.File
	root   *os.File // the same, for handles
	pool   *pool
	most   int // files with a mapping: the kernel lets a process have so many
	plenty int // of them, of which no more are kept for nobody

	handles bool // files can be opened again by theirs

	mu struct {
		sync.Mutex
		used    int64      // bytes of every file there is: held, spare, dying and looked at; and of claims and slots
		claims  int64      // bytes that are taken by what is no slab
		slots   int        // slabs in the pool
		held    int        // files given out by take and not retired
		closed  int        // of those, files without a descriptor
		spare   []*ramFile // filled once, owned by nobody, ready to be filled again
		dying   []*ramFile // retired, but some rank still maps them
		looking []*ramFile // dying, as far as is known: sweep is finding out
		count   ramCounters
	}
}

type ramCounters struct {
	recycled uint64 // takes that were served by a spare file
	fresh    uint64
}

// A ramFile is one unnamed file of the tier with the daemon's mapping of it.
type ramFile struct {
	fd   int    // -1 if it is closed: then the kernel knows it as a backing file
	mem  []byte // length: the file's size; nil if it is not mapped
	size int64
	real int64 // bytes of memory it holds, in whole pages
	file handle
	lock sync.Mutex // of who attaches it, while several hold it
}

// errNoRoom: the tier cannot take a slab of that size now. It is ErrNoSpace to
// whom it may concern.
var errNoRoom = disks.ErrNoRoom

func newRAM(budget int64) (*ram, error) {
	// within_size: huge pages where a file fills them, none past its end,
	// so that real bytes are the size rounded up to a page.
	dir, err := mountTmpfs(budget, "within_size")
	if err != nil {
		return nil, err
	}
	p, err := newPool(budget)
	if err != nil {
		dir.Close()
		return nil, err
	}
	root, err := os.Open(fmt.Sprintf("/proc/self/fd/%d/.", dir.Fd()))
	if err != nil {
		return nil, errors.Join(err, dir.Close(), p.close())
	}
	most := mostMappings() / 4 * 3
	r := &ram{dir: dir, root: root, pool: p, most: most, plenty: min(plentyFiles, most/2, disks.MostFiles()/2)}
	r.budget.Store(budget)
	r.handles = r.canReopen()
	return r, nil
}

// plentyFiles is how many files are kept at hand: they cost the kernel 30 MB.
const plentyFiles = 1 << 14

// take returns a file of the given size whose bytes are anything, or errNoRoom
// if that would exceed the budget.
func (r *ram) take(size int64) (*ramFile, error) {
	need := pages(size)
	f, discard, err := r.reserve(need)
	for _, d := range discard {
		d.close()
	}
	if err != nil {
		return nil, err
	}
	if f == nil {
		f, err = r.create(size)
		for errors.Is(err, errNoRoom) && r.thin() {
			f, err = r.create(size)
		}
	} else {
		err = f.ready(size)
	}
	if err != nil {
		r.release(need)
		return nil, err
	}
	return f, nil
}

// reserve finds a spare file of exactly so many pages, or sets bytes aside for
// a fresh one, taking them from spare files of other sizes if it must.
func (r *ram) reserve(need int64) (f *ramFile, discard []*ramFile, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The file used last is the likeliest to be in the processor's cache.
	for i := len(r.mu.spare) - 1; i >= 0; i-- {
		if r.mu.spare[i].real == need {
			f = r.mu.spare[i]
			r.mu.spare = append(r.mu.spare[:i], r.mu.spare[i+1:]...)
			r.mu.held++
			r.mu.count.recycled++
			return f, nil, nil
		}
	}
	discard, err = r.set(need, 1)
	if err == nil {
		r.mu.held++
		r.mu.count.fresh++
	}
	return nil, discard, err
}

// set counts bytes as used, for so many more files, those of spare files that must
// go taken off. mu is held; the files are to be closed without it.
func (r *ram) set(need int64, files int) (discard []*ramFile, err error) {
	fits := func() bool {
		return r.mu.used+need <= r.budget.Load() && (files == 0 || r.files()+files <= r.most)
	}
	for !fits() && len(r.mu.spare) > 0 {
		discard = append(discard, r.oldest())
	}
	switch {
	case fits():
		r.mu.used += need
		return discard, nil
	case r.mu.used+need <= r.budget.Load():
		return discard, errMappings
	}
	return discard, errNoRoom
}

// errMappings is errNoRoom for the lack of nothing but mappings.
var errMappings = fmt.Errorf("%w: as many mappings as vm.max_map_count allows a process", errNoRoom)

// files is how many have a descriptor and a mapping. mu is held.
func (r *ram) files() int {
	return r.mu.held - r.mu.closed + len(r.mu.spare) + len(r.mu.dying) + len(r.mu.looking)
}

// oldest takes the first of the spare files. mu is held.
func (r *ram) oldest() *ramFile {
	f := r.mu.spare[0]
	r.mu.spare = r.mu.spare[1:]
	r.mu.used -= f.real
	return f
}

// thin closes a spare file, if there is one: what it takes of the process, not
// its memory, may be what another lacks.
func (r *ram) thin() bool {
	r.mu.Lock()
	if len(r.mu.spare) == 0 {
		r.mu.Unlock()
		return false
	}
	f := r.oldest()
	r.mu.Unlock()
	f.close()
	return true
}

// claim counts bytes that somebody else takes of the budget.
func (r *ram) claim(bytes int64) error {
	r.mu.Lock()
	discard, err := r.set(bytes, 0)
	if err == nil {
		r.mu.claims += bytes
	}
	r.mu.Unlock()
	for _, d := range discard {
		d.close()
	}
	return err
}

func (r *ram) unclaim(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.used -= bytes
	r.mu.claims -= bytes
}

// release takes back what reserve set aside.
func (r *ram) release(real int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.used -= real
	r.mu.held--
}

func (r *ram) create(size int64) (*ramFile, error) {
	fd, err := unix.Openat(int(r.dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0600)
	if err == nil {
		if err = disks.Affordable(fd); err != nil {
			unix.Close(fd)
		}
	}
	if disks.OutOfFiles(err) {
		// As good as full: what is evicted leaves its descriptor behind.
		return nil, fmt.Errorf("create ram slab: %w", disks.ErrOutOfFiles)
	}
	if err != nil {
		return nil, fmt.Errorf("create ram slab: %w", err)
	}
	f := &ramFile{fd: fd, size: size, real: pages(size)}
	if err := f.grow(size); err != nil {
		f.close()
		return nil, fmt.Errorf("create ram slab of %d bytes: %w", size, err)
	}
	return f, nil
}

// mostMappings is how many the kernel lets a process have.
func mostMappings() int {
	const usual = 65530
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return usual
	}
	return n
}

// grow gives a new file its size, its pages and its mapping, all at once: a
// copy into a mapping cannot report a full tmpfs.
//
// The pages come from writing zeros, not from faults. A write gets the largest
// folio that fits, a fault below 2 MiB a single page, and that is what ranks
// feel: a 1 MiB batch is summed through a fresh mapping in 39 us from one
// folio and in 110 us from 256 pages.
func (f *ramFile) grow(size int64) error {
	if size == 0 {
		return nil
	}
	if err := unix.Ftruncate(f.fd, size); err != nil {
		return err
	}
	zeros, err := zeroBytes()
	if err != nil {
		return err
	}
	for at := int64(0); at < size; {
		n, err := unix.Pwrite(f.fd, zeros[:min(size-at, int64(len(zeros)))], at)
		if err != nil {
			return fmt.Errorf("%w: %w", err, errNoRoom)
		}
		at += int64(n)
	}
	return f.mapIt()
}

// mapIt maps a file that has its pages.
func (f *ramFile) mapIt() error {
	mem, err := unix.Mmap(f.fd, 0, int(f.real), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == unix.ENOMEM {
		return errMappings
	}
	if err != nil {
		return err
	}
	f.mem = mem[:f.size]
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("%w: %w", err, errNoRoom)
	}
	return nil
}

// ready has a spare file be one of another size within its last page.
func (f *ramFile) ready(size int64) error {
	if f.size != size {
		if err := f.resize(size); err != nil {
			return err
		}
	}
	if f.mem == nil && size > 0 {
		return f.mapIt()
	}
	return nil
}

// zeroBytes is 2 MiB, a huge page, that are zero and cost no memory.
var zeroBytes = sync.OnceValues(func() ([]byte, error) {
	return unix.Mmap(-1, 0, 2<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
})

// resize changes the size within the last page. Shrinking makes the kernel
// clear the rest of that page, so no old byte shows past the end.
func (f *ramFile) resize(size int64) error {
	if err := unix.Ftruncate(f.fd, size); err != nil {
		return fmt.Errorf("resize ram slab: %w", err)
	}
	f.size = size
	if f.mem != nil {
		f.mem = f.mem[:size]
	}
	return nil
}

// retire takes a file back, whose backing id is gone, so that nobody can open it
// any more. It is spare at once if no rank maps it.
func (r *ram) retire(f *ramFile) {
	if free := f.fd >= 0 && disks.Unmapped(f.fd); r.retired(f, free) {
		f.close()
	}
}

// retired accounts for a file that is retired, and reports whether it is to be
// closed: there are plenty.
func (r *ram) retired(f *ramFile, free bool) (enough bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.held--
	switch {
	case f.fd < 0: // it could not be opened again, and is gone with the backing id
		r.mu.closed--
		r.mu.used -= f.real
	case free && r.files() > r.plenty:
		r.mu.used -= f.real
		return true
	case free:
		r.mu.spare = append(r.mu.spare, f)
	default:
		r.mu.dying = append(r.mu.dying, f)
	}
	return false
}

// sweep makes spare the dying files that are no longer mapped, unless another one
// is at it.
func (r *ram) sweep() {
	r.mu.Lock()
	if len(r.mu.looking) > 0 {
		r.mu.Unlock()
		return
	}
	r.mu.looking, r.mu.dying = r.mu.dying, nil
	looking := r.mu.looking
	r.mu.Unlock()
	var spare, still []*ramFile
	for _, f := range looking {
		if disks.Unmapped(f.fd) {
			spare = append(spare, f)
		} else {
			still = append(still, f)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.spare = append(r.mu.spare, spare...)
	r.mu.dying = append(r.mu.dying, still...)
	r.mu.looking = nil
}

func (f *ramFile) close() {
	if f.mem != nil {
		unix.Munmap(f.mem[:cap(f.mem)])
	}
	unix.Close(f.fd)
}

// close gives back everything but what ranks still map, which the kernel
// keeps for them.
func (r *ram) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range append(r.mu.spare, r.mu.dying...) {
		r.mu.used -= f.real
		f.close()
	}
	r.mu.spare, r.mu.dying = nil, nil
	err := errors.Join(r.root.Close(), r.dir.Close(), r.pool.close())
	if r.mu.held != 0 || r.mu.used != 0 {
		err = errors.Join(err, fmt.Errorf("close ram tier: %d slabs and %d bytes not given back", r.mu.held, r.mu.used))
	}
	return err
}

// pages rounds up to whole pages, which is what a file on tmpfs holds.
func pages(size int64) int64 {
	page := int64(unix.Getpagesize())
	return (size + page - 1) / page * page
}
