package policy

import (
	"cmp"
	"slices"
)

const (
	few  = 24 // upgrades that are sorted at once
	deep = 64 // levels of splitting, after which they are sorted whatever it costs
)

// A ladder takes upgrades in falling order of slope for as long as they fit.
// Sorting a million of them exactly would be most of a choice, and is needed only
// where they do not all fit: they are counted into buckets, and a bucket is
// sorted when it is more than what is left.
type ladder struct {
	upgrades, spare []upgrade
	ends            [buckets + 1]int32
	least           int64
}

func (r *ladder) reset() { r.upgrades = r.upgrades[:0] }

func (r *ladder) add(bundle int32, upgrades []upgrade) {
	for _, s := range upgrades {
		s.bundle = bundle
		r.upgrades = append(r.upgrades, s)
	}
}

// climb calls take for every upgrade in order, until left says that none can fit.
func (r *ladder) climb(bundles []bundle, left func() int64, take func(*bundle, upgrade)) {
	r.count()
	for b := range buckets {
		group := r.spare[r.ends[b]:r.ends[b+1]]
		if len(group) == 0 {
			continue
		}
		if left() < r.least {
			return
		}
		choose(bundles, group, left, take, 0)
	}
}

// choose takes those upgrades that fit, in order: a quicksort that leaves alone
// what fits as a whole, and drops what cannot fit any more. Of equal items,
// which are all in one bucket, it so sorts few.
func choose(bundles []bundle, group []upgrade, left func() int64, take func(*bundle, upgrade), depth int) {
	for len(group) > 0 {
		room, sum := left(), int64(0)
		group = slices.DeleteFunc(group, func(s upgrade) bool { return s.bytes > room })
		for _, s := range group {
			sum += s.bytes
		}
		if sum > room && len(group) > few && depth < deep {
			k := split(bundles, group)
			depth++
			choose(bundles, group[:k], left, take, depth)
			group = group[k:]
			continue
		}
		if sum > room {
			slices.SortFunc(group, func(a, b upgrade) int { return before(bundles, a, b) })
		}
		for _, s := range group {
			take(&bundles[s.bundle], s)
		}
		return
	}
}

// split parts upgrades into some that come before all others, and the others:
// neither is empty. Upgrades often are in some order already, or in two, one into the
// other, so it looks at several places for one in the middle.
func split(bundles []bundle, group []upgrade) int {
	const looks = few / 2
	var pivots [looks]upgrade
	for i := range pivots {
		pivots[i] = group[i*(len(group)-1)/(looks-1)]
	}
	slices.SortFunc(pivots[:], func(a, b upgrade) int { return before(bundles, a, b) })
	k := 0
	for i, s := range group {
		if before(bundles, s, pivots[looks/2]) < 0 {
			group[i], group[k] = group[k], s
			k++
		}
	}
	return max(k, 1)
}

// count puts the upgrades into their buckets, the steepest first.
func (r *ladder) count() {
	r.ends, r.least = [buckets + 1]int32{}, 1<<62
	for _, s := range r.upgrades {
		b := buckets - 1 - bucket(s.slope)
		r.ends[b+1]++
		r.least = min(r.least, s.bytes)
	}
	for b := range buckets {
		r.ends[b+1] += r.ends[b]
	}
	r.spare = resize(r.spare, len(r.upgrades))
	at := r.ends
	for _, s := range r.upgrades {
		b := buckets - 1 - bucket(s.slope)
		r.spare[at[b]] = s
		at[b]++
	}
}

// before orders upgrades that compete: by slope, then by what is used sooner, was
// used later, is smaller. Only what is equal in all that goes by its place.
func before(bundles []bundle, a, b upgrade) int {
	x, y := &bundles[a.bundle], &bundles[b.bundle]
	return cmp.Or(cmp.Compare(b.slope, a.slope), cmp.Compare(x.next, y.next), cmp.Compare(y.last, x.last),
		cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.bundle, b.bundle))
}
