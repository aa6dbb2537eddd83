package cache

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A slotFile is one large file in whose slots small batches are while no rank has
// them open: a file for each would cost the kernel a kilobyte, and this process a
// descriptor and a mapping. It has pages of the usual size, so that what is in
// slots is what it takes, and is written and read, not mapped. A slot that is
// given back is cut out of the file.
//
// The lock guards which slots are taken. A slot is read and written without it, by the
// batch that has taken it.
type slotFile struct {
	dir, file *os.File
	ending    atomic.Bool // the file goes as a whole

	mu struct {
		sync.Mutex
		slots *slots
	}
}

// roomier is the ratio of the file's length to the budget: a block of it has
// slots of one size, and is not full of them for ever.
const roomier = 4

func newSlotFile(budget int64) (*slotFile, error) {
	dir, err := mountTmpfs(budget, "never")
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0600)
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("create file of small slabs: %w", err)
	}
	f := &slotFile{dir: dir, file: os.NewFile(uintptr(fd), "rankfs-small-slabs")}
	maxBlocks := min(int(roomier*budget/(blockPages*meta.WholePages(1)))+2*slotBytes/int(meta.WholePages(1)), 1<<32/blockPages)
	f.mu.slots = newSlots(maxBlocks)
	if err := unix.Ftruncate(fd, int64(maxBlocks)*blockPages*meta.WholePages(1)); err != nil {
		f.close()
		return nil, fmt.Errorf("create file of small slabs: %w", err)
	}
	return f, nil
}

// put copies bytes into a slot.
func (f *slotFile) put(mem []byte) (slot uint32, err error) {
	f.mu.Lock()
	slot, ok := f.mu.slots.take(slotPages(len(mem)))
	f.mu.Unlock()
	if !ok {
		return 0, meta.Worded(errNoRoom, "file of small slabs: no slot")
	}
	for at := slotOffset(slot); len(mem) > 0; {
		n, err := unix.Pwrite(int(f.file.Fd()), mem, at)
		if err != nil {
			f.give(slot, int64(len(mem)))
			return 0, meta.Worded(errNoRoom, "write small slab: %w", err)
		}
		mem, at = mem[n:], at+int64(n)
	}
	return slot, nil
}

// get copies the bytes of a slot.
func (f *slotFile) get(slot uint32, mem []byte) error {
	for at := slotOffset(slot); len(mem) > 0; {
		n, err := unix.Pread(int(f.file.Fd()), mem, at)
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return fmt.Errorf("read small slab: %w", err)
		}
		mem, at = mem[n:], at+int64(n)
	}
	return nil
}

// give takes back the slot of so many bytes.
func (f *slotFile) give(slot uint32, size int64) {
	if size > 0 && !f.ending.Load() {
		const cut = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
		for unix.Fallocate(int(f.file.Fd()), cut, slotOffset(slot), meta.WholePages(size)) == unix.EINTR {
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.slots.give(slot)
}

func (f *slotFile) close() error {
	err := f.file.Close()
	if derr := f.dir.Close(); err == nil {
		err = derr
	}
	return err
}

// slotPages is the number of pages of the slot of so many bytes: an empty batch takes one too.
func slotPages(size int) uint32 {
	return uint32(max(meta.WholePages(int64(size)), meta.WholePages(1)) / meta.WholePages(1))
}

func slotOffset(slot uint32) int64 { return int64(slot) * meta.WholePages(1) }
