package blobs

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// Granule is the unit in which a blob is written and checked. Finding a record
// on a cold disk takes one at most, and their sums are 8 MiB for a terabyte.
const Granule = 1 << 20

// Granules is the number of granules of a blob of that size.
func Granules(size int64) int { return int((size + Granule - 1) / Granule) }

// Sums say of each granule of a blob what its bytes hash to. They are kept in a
// file beside the blob, in no order with it: after a crash of the machine either
// may be behind, which a comparison shows.
type sums struct {
	file *disks.File
	size int64           // of the blob
	want []atomic.Uint64 // zero: it is not there
	seen []atomic.Bool   // it matched, or was written, since this process runs
}

// sumsBytes is the size of the file of sums.
func sumsBytes(size int64) int64 { return 8 * int64(Granules(size)) }

func newSums(size int64) *sums {
	n := Granules(size)
	return &sums{size: size, want: make([]atomic.Uint64, n), seen: make([]atomic.Bool, n)}
}

// read takes the sums from the file, whose size must fit.
func (s *sums) read() error {
	size, err := s.file.Size()
	if err != nil {
		return err
	}
	if size != sumsBytes(s.size) {
		return fmt.Errorf("file of sums %w: it has %d bytes", meta.ErrCorrupt, size)
	}
	b := make([]byte, min(size, 256<<10))
	for at := 0; at < len(s.want); {
		n := min(len(b)/8, len(s.want)-at)
		if _, err := s.file.ReadAt(b[:8*n], 8*int64(at)); err != nil {
			return err
		}
		for i := range n {
			s.want[at+i].Store(binary.LittleEndian.Uint64(b[8*i:]))
		}
		at += n
	}
	return nil
}

// none reports whether nothing of the blob is there.
func (s *sums) none() bool {
	for i := range s.want {
		if s.want[i].Load() != 0 {
			return false
		}
	}
	return true
}

// put enters what granule i was written with.
func (s *sums) put(i int, content []byte) error {
	sum := notZero(xxhash.Sum64(content))
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], sum)
	if _, err := s.file.WriteAt(b[:], 8*int64(i)); err != nil {
		return err
	}
	s.want[i].Store(sum)
	s.seen[i].Store(true)
	return nil
}

// match reports whether granule i of the blob has the sum that was written with it.
func (s *sums) match(blob *disks.File, i int) (bool, error) {
	want := s.want[i].Load()
	if want == 0 {
		return false, nil
	}
	sum, err := blob.Sum(int64(i)*Granule, s.length(i))
	if err != nil || notZero(sum) != want {
		return false, err
	}
	s.seen[i].Store(true)
	return true, nil
}

// length is the length of granule i.
func (s *sums) length(i int) int64 { return min(Granule, s.size-int64(i)*Granule) }

// notZero is a sum: zero says that there is none.
func notZero(sum uint64) uint64 { return max(1, sum) }
