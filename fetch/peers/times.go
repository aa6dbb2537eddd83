package peers

import (
	"math/bits"
	"slices"
	"time"
)

// remembered requests of a class are what p95 is taken of.
const remembered = 256

// enough requests have to be known before it means anything.
const enough = 16

// classes of requests, by their bytes: up to 64 KiB, 1 MiB, 16 MiB, and more.
const classes = 4

func classOf(bytes uint64) int {
	return min(max(0, bits.Len64(bytes-min(bytes, 1))-13)/4, classes-1)
}

// times are the last ones that requests took.
type times struct {
	ring   [remembered]time.Duration
	sorted []time.Duration // the same
	at     int
}

func (t *times) add(d time.Duration) {
	if len(t.sorted) == remembered {
		i, _ := slices.BinarySearch(t.sorted, t.ring[t.at])
		t.sorted = slices.Delete(t.sorted, i, i+1)
	}
	t.ring[t.at] = d
	t.at = (t.at + 1) % remembered
	i, _ := slices.BinarySearch(t.sorted, d)
	t.sorted = slices.Insert(t.sorted, i, d)
}

// p95 is the time that 95 of 100 requests did not exceed.
func (t *times) p95() (d time.Duration, ok bool) {
	n := len(t.sorted)
	if n < enough {
		return 0, false
	}
	return t.sorted[(n*95+99)/100-1], true
}
