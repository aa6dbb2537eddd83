package disks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// read opens a slab's file and makes sure that its bytes are right. It need not hash
// them if this daemon has hashed or written them, no process has written to the file
// since, and they either stayed in the page cache or were hashed a moment ago.
func (d *directory) read(j *job, s *slab, right proof) (*os.File, error) {
	f, err := s.place.open(s.name())
	if err != nil {
		return nil, err
	}
	if err := d.check(j, f, s, right); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// open opens a file, and nothing else that has its name: a named pipe would
// have it wait, a link lead elsewhere.
func (p *place) open(name string) (*os.File, error) {
	f, err := p.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		if err = Affordable(int(f.Fd())); err == nil {
			return f, nil
		}
		f.Close()
		return nil, err
	}
	if info, other := p.root.Lstat(name); other == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is %v", meta.ErrCorrupt, info.Mode())
	}
	return nil, err
}

func (d *directory) check(j *job, f *os.File, s *slab, right proof) error {
	changed, still, err := d.still(f, s, right)
	if err != nil || still {
		return err
	}
	return d.prove(j, f, s, changed, nil)
}

// prove reads all of a slab, into mem if that is anything, and notes that it is
// right as of a change of its file.
func (d *directory) prove(j *job, f *os.File, s *slab, changed unix.Timespec, mem []byte) error {
	if err := verify(j, f, s.label, mem); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.right = proof{time.Now(), changed}
	d.mu.count.hashed++
	d.mu.count.hashedBytes += uint64(s.size)
	return nil
}

// still reports whether what was proven holds, as far as can be said without
// reading, and which change of the file that is about.
func (d *directory) still(f *os.File, s *slab, right proof) (changed unix.Timespec, ok bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return changed, false, err
	}
	if !info.Mode().IsRegular() || info.Size() != s.size {
		return changed, false, fmt.Errorf("%w: it is %v of %d bytes", meta.ErrCorrupt, info.Mode(), info.Size())
	}
	if err := answers(f); err != nil {
		return changed, false, err
	}
	changed = changeOf(info)
	if right.at.IsZero() || right.changed != changed {
		return changed, false, nil
	}
	return changed, time.Since(right.at) < d.config.Trust || resident(f, s.size), nil
}

// answers reports whether a file can be read, without waiting for its disk: one
// that has been shut down refuses even what is in memory.
func answers(f *os.File) error {
	var b [1]byte
	_, err := unix.Preadv2(int(f.Fd()), [][]byte{b[:]}, 0, unix.RWF_NOWAIT)
	if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

func changeOf(info fs.FileInfo) unix.Timespec {
	return unix.Timespec(info.Sys().(*unixStat).Ctim)
}

// resident reports whether all of the file is in the page cache.
func resident(f *os.File, size int64) bool {
	var s unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: uint64(size)}, &s, 0)
	page := int64(unix.Getpagesize())
	return err == nil && int64(s.Cache) >= (size+page-1)/page
}

// window is what is read at a time to be hashed: it stays in the processor's
// cache from the copy to the hash.
const window = 256 << 10

// verify compares a file with its label, and copies what it compares to mem if
// that is anything. Earlier versions summed the bytes
// alone, which is tried second: it is read again if it is theirs, or damaged.
func verify(j *job, f *os.File, l label, mem []byte) error {
	for _, h := range []*xxhash.Digest{newSum(l.key, l.size), xxhash.New()} {
		if err := feed(j, h, f, l.size, mem); err != nil {
			return err
		}
		if h.Sum64() == l.sum {
			return nil
		}
	}
	return fmt.Errorf("%w: its bytes do not match its checksum", meta.ErrCorrupt)
}

func feed(j *job, h *xxhash.Digest, f *os.File, size int64, mem []byte) error {
	scratch, err := unix.Mmap(-1, 0, window, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("%w: %w", err, unix.ENFILE)
	}
	defer unix.Munmap(scratch)
	for at := int64(0); at < size; {
		n, err := f.ReadAt(scratch[:min(window, size-at)], at)
		if n == 0 || err != nil && err != io.EOF {
			return fmt.Errorf("read at byte %d: %w", at, err)
		}
		_, _ = h.Write(scratch[:n])
		if mem != nil && !j.give(mem[at:], scratch[:n]) {
			return errStuck
		}
		at += int64(n)
		j.alive()
	}
	return nil
}
