package queue

import (
	"cmp"
	"math"
	"slices"
)

// A bid is the time that one reader would take, in nanoseconds.
type bid struct {
	*reader
	from  float64 // when it is done with what it has
	near  float64 // what it takes for a unit on its node
	far   float64 // and for any other
	local float64 // how many of the free units are on its node: its share of them
	mates float64 // readers that share them
}

// by is the number of units that the reader could have done at a time.
func (b bid) by(at float64) int {
	units := max(0, at-b.from) / b.near
	if units > b.local {
		units = b.local + max(0, at-b.from-b.local*b.near)/b.far
	}
	return int(units)
}

// end is when it would have done one more than its quota.
func (b bid) end() float64 {
	units := float64(b.quota + 1)
	return b.from + min(units, b.local)*b.near + max(0, units-b.local)*b.far
}

// share divides n units so that the last of them is done as early as the
// estimates allow: each reader gets what it can do by the latest time at which
// that is not more than n, and the few that are left go where they end first.
func share(bids []bid, n int) {
	if len(bids) == 0 {
		return
	}
	at := latest(bids, n)
	for _, b := range bids {
		b.quota = b.by(at)
		n -= b.quota
	}
	for n > 0 {
		slices.SortStableFunc(bids, before)
		for _, b := range bids[:min(n, len(bids))] {
			b.quota++
		}
		n -= min(n, len(bids))
	}
}

// before orders the reader first that ends first, and of equals the one with fewer leases.
func before(a, b bid) int {
	return cmp.Or(cmp.Compare(a.end(), b.end()), cmp.Compare(len(a.leases), len(b.leases)))
}

// latest is the latest time, to one part in 2^40, by which all together
// would have done at most n.
func latest(bids []bid, n int) float64 {
	low, high := math.Inf(1), 0.0
	for _, b := range bids {
		low = min(low, b.from)
		high = max(high, b.from+float64(n+1)*max(b.near, b.far))
	}
	for range 40 {
		middle := (low + high) / 2
		if total(bids, middle, n) > n {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// total counts up to n+1 only.
func total(bids []bid, at float64, n int) int {
	sum := 0
	for _, b := range bids {
		if sum += b.by(at); sum > n {
			break
		}
	}
	return sum
}
