package stall

import (
	"math/bits"
	"time"
)

// A histogram counts spans in buckets of half an octave, from a microsecond to
// an hour: what it tells is wrong by a fifth at most, which is less than spans
// of waiting differ from one day to the next.
type histogram [64]uint32

func (h *histogram) add(d time.Duration) { h[bucket(d)]++ }

// bucket is twice the logarithm of the microseconds.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	octave := bits.Len64(us) - 1
	half := 0
	if octave > 0 && us>>(octave-1)&1 == 1 {
		half = 1
	}
	return min(2*octave+half, len(histogram{})-1)
}

// middle stands for the spans of a bucket, which begins at two or three
// times a power of two.
func middle(bucket int) time.Duration {
	low := time.Microsecond << (bucket / 2)
	if bucket%2 == 0 {
		return low + low/4
	}
	return low + 3*low/4
}

// quantile is the span that so many of all, from 0 to 1, do not exceed. Zero if
// there were none.
func (h *histogram) quantile(q float64) time.Duration {
	total := uint64(0)
	for _, n := range h {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	left := uint64(q * float64(total))
	for i, n := range h {
		if left < uint64(n) {
			return middle(i)
		}
		left -= uint64(n)
	}
	return middle(len(h) - 1)
}
