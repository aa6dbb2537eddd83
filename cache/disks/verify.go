package disks

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/slowdisk"
)

// still reports whether what was proven holds, as far as can be said without
// reading, and which change of the file that is about. For as long as trust it need not
// be in memory.
func (s *slab) still(f *os.File, right proof, trust time.Duration) (changed unix.Timespec, ok bool, err error) {
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
	return changed, time.Since(right.at) < trust || resident(f, s.size), nil
}

// open opens the file of a slab, of which it says what still does.
func (s *slab) open(w *slowdisk.Work, right proof, trust time.Duration) (f *os.File, changed unix.Timespec, ok bool, err error) {
	err = w.Do(func() (err error) {
		if f, err = s.place.open(s.name()); err != nil {
			return err
		}
		if changed, ok, err = s.still(f, right, trust); err != nil {
			f.Close()
		}
		return err
	})
	return f, changed, ok, err
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

// resident reports whether all of the file is in the page cache.
func resident(f *os.File, size int64) bool {
	var s unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: uint64(size)}, &s, 0)
	page := int64(unix.Getpagesize())
	return err == nil && int64(s.Cache) >= (size+page-1)/page
}

// verify compares a file with its label, and copies what it compares to mem if
// that is anything. Earlier versions summed the bytes
// alone, which is tried second: it is read again if it is theirs, or damaged.
func verify(w *slowdisk.Work, f *os.File, l label, mem []byte) error {
	for _, h := range []*xxhash.Digest{newSum(l.key, l.size), xxhash.New()} {
		if err := feed(w, h, f, 0, l.size, mem); err != nil {
			return err
		}
		if h.Sum64() == l.sum {
			return nil
		}
	}
	return fmt.Errorf("%w: its bytes do not match its checksum", meta.ErrCorrupt)
}
