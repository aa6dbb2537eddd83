package cache

import (
	"time"

	"rankfs/cache/ahead"
	"rankfs/cache/policy"
)

// A rate is a running mean of amounts over time.
type rate struct{ perSecond float64 }

func (r *rate) add(amount float64, took time.Duration) {
	now := amount / max(took.Seconds(), 1e-6)
	if r.perSecond == 0 {
		r.perSecond = now
	}
	r.perSecond += (now - r.perSecond) / 8
}

// blend is a running mean of durations.
func blend(old, now time.Duration) time.Duration {
	if old == 0 {
		return now
	}
	return old + (now-old)/4
}

// rates are measured of fills and copies.
type rates struct {
	from   [policy.Levels]cost // of a fill from there
	writes rate                // of slabs to disks
	fills  ahead.Fills         // how many are worth doing at a time
}
