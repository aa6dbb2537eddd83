package disks

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/diskdir"
)

// A place is where a directory is, and what is known of the room there.
//
// No lock guards it: it does not change, but for its counters. All of its methods but
// blocks, seen and temporary ask the disk, and may wait for it.
type place struct {
	*diskdir.Place
	parts   string // how names of unfinished files begin
	block   int64
	pending *atomic.Int64 // bytes to be written on this file system that have no blocks yet
	max     atomic.Int64  // that the directory may use as its file system was found last
	serial  atomic.Uint64 // of the last unfinished file
	listed  chan struct{} // closed when its names have been seen
}

// fileSystems are shared by directories: what one is about to write is not
// free for another. mu guards the map; what is pending is counted without it.
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

// A Floor is the part of a file system that stays free: the larger of the two.
type Floor struct {
	Bytes   int64
	Percent float64 // of the file system's size
}

func (f Floor) of(total int64) int64 {
	return max(f.Bytes, int64(f.Percent/100*float64(total)))
}

// partPrefix begins the names of unfinished files. Those of another place are
// removed: of another daemon, which is gone if it cannot hold the lock, or of this
// one before the disk failed, when it could not remove them.
const partPrefix = ".part-"

// openPlace opens the place of a path.
func openPlace(path string, create bool, systems *fileSystems) (*place, error) {
	at, err := diskdir.Open(path, create)
	if err != nil {
		return nil, err
	}
	s, err := at.FileSystem()
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	p := &place{
		Place: at, parts: partPrefix + rand.Text() + "-", block: max(s.Bsize, 512), pending: systems.of(at.Dev), listed: make(chan struct{}),
	}
	p.max.Store(math.MaxInt64)
	return p, nil
}

// open opens a file, and nothing else that has its name: a named pipe would
// have it wait, a link lead elsewhere.
func (p *place) open(name string) (*os.File, error) {
	f, err := p.Root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		if err = Affordable(int(f.Fd())); err == nil {
			return f, nil
		}
		f.Close()
		return nil, err
	}
	if info, other := p.Root.Lstat(name); other == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is %v", meta.ErrCorrupt, info.Mode())
	}
	return nil, err
}

// blocks are the bytes that a file of that size takes, but for the map of its
// blocks.
func (p *place) blocks(size int64) int64 {
	if size > 1<<62 {
		return size
	}
	return (size + p.block - 1) / p.block * p.block
}

// lack is the number of bytes that the file system will lack of its floor, where the directory
// uses so many.
func (p *place) lack(floor Floor, used int64) (int64, error) {
	s, err := p.FileSystem()
	if err != nil {
		return 0, err
	}
	lack := floor.of(int64(s.Blocks)*s.Bsize) + p.pending.Load() - int64(s.Bavail)*s.Bsize
	p.max.Store(used - lack)
	return lack, nil
}

// temporary is a name for an unfinished file.
func (p *place) temporary() string { return p.parts + strconv.FormatUint(p.serial.Add(1), 10) }

// seen reports whether all names in the place have been looked at.
func (p *place) seen() bool {
	select {
	case <-p.listed:
		return true
	default:
		return false
	}
}
