package policy

import (
	"math"
	"slices"
)

// Bound is no less than the Gain of any choice that keeps to the budgets and
// leaves groups whole: the optimum of the linear program in which a bundle may be
// in parts at several levels, without pins and without regard to jobs.
func Bound(p *Problem) float64 {
	var f forecast
	var d draft
	f.learn(p)
	d.gather(p, &f, 0)
	high := 0.0
	for i := range d.bundles {
		if d.bundles[i].bytes[Disk] >= 0 {
			high = math.Max(high, d.bundles[i].density(Disk))
		}
	}
	low, best := 0.0, relaxed(d.bundles, p, 0)
	if p.Disk <= 0 {
		return math.Min(best, relaxed(d.bundles, p, high))
	}
	// Convex in the price of disk, and a bound at any.
	for range 100 {
		a, b := low+(high-low)/3, high-(high-low)/3
		x, y := relaxed(d.bundles, p, a), relaxed(d.bundles, p, b)
		best = min(best, x, y)
		if x < y {
			high = b
		} else {
			low = a
		}
	}
	return best
}

// relaxed is the most that can be gained if disk has a price and no limit, and
// the last upgrade may be taken in part.
func relaxed(bundles []bundle, p *Problem, price float64) float64 {
	sum := price * float64(max(p.Disk, 0))
	var upgrades []upgrade
	var out [2]upgrade
	for i := range bundles {
		l := &bundles[i]
		n, onDisk := l.upgrades(price, &out)
		if onDisk {
			gain, _ := l.ground(price)
			sum += gain
		}
		upgrades = append(upgrades, out[:n]...)
	}
	slices.SortFunc(upgrades, func(a, b upgrade) int {
		switch {
		case a.slope > b.slope:
			return -1
		case a.slope < b.slope:
			return 1
		}
		return 0
	})
	left := max(p.Memory, 0)
	for _, s := range upgrades {
		part := min(s.bytes, left)
		left -= part
		if s.bytes == 0 {
			sum += s.slope * 1e-9
			continue
		}
		sum += s.slope * float64(part)
	}
	return sum
}

// Gain is how many seconds of waiting and work less than with everything at
// its source the levels are expected to cost over the horizon.
func Gain(p *Problem, levels []Level) float64 {
	var f forecast
	f.learn(p)
	sum := 0.0
	for i, l := range levels {
		sum += f.uses[i]*p.Items[i].saved(l) - p.Items[i].cost(l)
	}
	return sum
}
