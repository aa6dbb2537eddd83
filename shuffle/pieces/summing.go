package pieces

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
)

// mappedAtOnce is how much of a file is mapped at a time.
const mappedAtOnce = 16 << 20

// A Summing makes the table of a map that is divided so, of its files one after the other.
type Summing struct {
	is     Table
	pieces Reader
}

// NewSumming begins a table of the parts that have these offsets.
func NewSumming(o Offsets) *Summing {
	parts := uint64(len(o)/8 - 1)
	s := &Summing{is: make(Table, 0, RowBytes*parts)}
	s.pieces = Reader{
		n: parts, end: func(i uint64) int64 { return o.at(i + 1) },
		summed: func(i, sum uint64) error {
			s.is = AppendRow(s.is, o.at(i+1), sum)
			return nil
		},
	}
	return s
}

// Know adds pieces whose sums are known.
func (s *Summing) Know(sums []uint64) {
	p := &s.pieces
	for _, sum := range sums {
		s.is = AppendRow(s.is, p.end(p.i), sum)
		p.at = p.end(p.i)
		p.i++
	}
}

// Add adds a file in memory. It is summed where it is: to copy it first took as long as the
// sum. The file must not become shorter meanwhile.
func (s *Summing) Add(file *os.File, size int64) error {
	fd := int(file.Fd())
	for at := int64(0); at < size; at += mappedAtOnce {
		b, err := unix.Mmap(fd, at, int(min(size-at, mappedAtOnce)), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return fmt.Errorf("map what is to be summed: %w", err)
		}
		err = fault.Guard(func() error { return s.pieces.Add(b) })
		if err = errors.Join(err, unix.Munmap(b)); err != nil {
			return err
		}
	}
	return nil
}

// End is the table, when all was added.
func (s *Summing) End() (Table, error) {
	err := s.pieces.Add(nil) // there may be empty ones alone
	return s.is, err
}
