package record

import "github.com/cespare/xxhash/v2"

// The sums of slices are taken while their records are looked at: so each byte comes from
// memory once.
type sums struct {
	digest *xxhash.Digest
	at     int // up to where bytes are in a sum
	all    []uint64
}

// sumBytes is after how many bytes a sum follows what is looked at: they are near still.
const sumBytes = 128 << 10

// upTo adds bytes up to a place to the sum of the slice in which they are.
func (s *sums) upTo(b []byte, at int) {
	if s.digest == nil {
		s.digest = xxhash.New()
	}
	s.digest.Write(b[s.at:at])
	s.at = at
}

// next has the next slice begin at a place. The one before ends there, if there is one.
func (s *sums) next(b []byte, at int, some bool) {
	s.upTo(b, at)
	if some {
		s.all = append(s.all, s.digest.Sum64())
		s.digest.Reset()
	}
}
