package policy

import "math"

// An upgrade takes a bundle to a level that needs more memory. Slope is its gain for each
// byte more.
type upgrade struct {
	slope  float64
	bundle int32
	level  Level
	bytes  int64 // of memory, more than at the upgrade before
}

// upgrades gives the upgrades of a bundle from the level without memory that is better
// at this price of disk, or from its pin; onDisk says that it starts there.
func (b *bundle) upgrades(price float64, out *[2]upgrade) (n int, onDisk bool) {
	if b.base > Disk {
		return b.hull(b.gain[b.base], b.bytes[b.base], out), false
	}
	at := 0.0
	if b.bytes[Disk] >= 0 {
		at, onDisk = b.ground(price)
	}
	return b.hull(at, 0, out), onDisk
}

// hull gives the upgrades from a gain and the memory that it takes, ascending in
// memory and with falling slope: the upper convex hull of what is possible.
// A level below it is best at no price of memory.
func (b *bundle) hull(at float64, mem int64, out *[2]upgrade) int {
	less, more := Packed, RAM
	if b.bytes[more] < b.bytes[less] {
		less, more = more, less
	}
	first, last := b.upgrade(less, at, mem), b.upgrade(more, at, mem)
	switch {
	case first.slope <= 0 && last.slope <= 0:
		return 0
	case first.slope <= last.slope:
		out[0] = last
		return 1
	}
	out[0], out[1] = first, b.upgrade(more, b.gain[less], b.bytes[less])
	if out[1].slope <= 0 {
		return 1
	}
	return 2
}

// upgrade is the one to a level; its slope is zero if it leads nowhere.
func (b *bundle) upgrade(to Level, from float64, mem int64) upgrade {
	s := upgrade{level: to, bytes: b.bytes[to] - mem}
	if b.bytes[to] >= 0 && s.bytes >= 0 && to >= b.base && b.gain[to] > from {
		// An upgrade that costs no bytes is the steepest of all.
		if s.slope = (b.gain[to] - from) * 1e9; s.bytes > 0 {
			s.slope = (b.gain[to] - from) / float64(s.bytes)
		}
	}
	return s
}

// ground is the best gain without memory.
func (b *bundle) ground(price float64) (gain float64, onDisk bool) {
	gain = b.gain[Disk] - price*float64(b.bytes[Disk])
	if gain > 0 || b.base == Disk {
		return gain, true
	}
	return 0, false
}

// Slopes are sorted into buckets by their leading bits, 32 to each doubling,
// and those of one bucket by the next twelve bits: to find a price to five
// digits takes two passes over the bundles and no sorting.
const (
	fine    = 5
	finer   = 12
	lowest  = 1023 - 80 // exponent of the least slope that is told from zero
	buckets = 128 << fine
)

func bucket(slope float64) int {
	b := int(math.Float64bits(slope)>>(52-fine)) - lowest<<fine
	return min(max(b, 0), buckets-1)
}

// part is where in its bucket a slope is.
func part(slope float64) int {
	return int(math.Float64bits(slope)>>(52-fine-finer)) & (1<<finer - 1)
}

// middle is a slope in the midst of a part of a bucket.
func middle(bucket, part int) float64 {
	bits := uint64(bucket+lowest<<fine)<<finer | uint64(part)
	return math.Float64frombits(bits<<(52-fine-finer) | 1<<(51-fine-finer))
}

// slopeSums add up upgrades by slope: the memory that they take and the disk that they leave.
type slopeSums struct{ coarse, close sums }

type sums struct{ mem, disk [buckets]int64 }

func (s *sums) add(at int, mem, disk int64) {
	s.mem[at] += mem
	s.disk[at] += disk
}

// fill takes the steepest upgrades until memory is full. It returns the disk that they
// leave, the memory that is left, and the bucket at which it became full, -1 if none.
func (s *sums) fill(memory int64) (disk, left int64, at int) {
	for at = len(s.mem) - 1; at >= 0 && s.mem[at] <= memory; at-- {
		memory -= s.mem[at]
		disk += s.disk[at]
	}
	return disk, memory, at
}

// fill takes the upgrades with the best slopes until memory is full, the last
// ones in part: the optimum of the linear program at this price of disk. It
// says what disk is used then, and the price of memory; not exactly, if it is
// clear that disk does not come near its limit.
func (t *slopeSums) fill(bundles []bundle, price float64, memory, limit int64) (disk int64, mem float64) {
	t.coarse = sums{}
	disk = each(bundles, price, func(s *upgrade, leaves int64) {
		t.coarse.add(bucket(s.slope), s.bytes, leaves)
	})
	freed, left, full := t.coarse.fill(memory)
	disk -= freed
	switch {
	case full < 0:
		return disk, 0
	case limit > 0 && disk-t.coarse.disk[full] > limit:
		return disk, middle(full, 0)
	case limit > 0 && disk < limit-limit/256:
		return disk, middle(full, 0)
	}
	t.close = sums{}
	each(bundles, price, func(s *upgrade, leaves int64) {
		if bucket(s.slope) == full {
			t.close.add(part(s.slope), s.bytes, leaves)
		}
	})
	more, left, in := t.close.fill(left)
	last := float64(left) / float64(t.close.mem[in]) * float64(t.close.disk[in])
	return disk - more - int64(last), middle(full, in)
}

// each calls take for all upgrades at a price of disk, with the disk that they
// leave, and gives the disk that is used before any of them.
func each(bundles []bundle, price float64, take func(s *upgrade, leaves int64)) (disk int64) {
	var out [2]upgrade
	for i := range bundles {
		b := &bundles[i]
		n, onDisk := b.upgrades(price, &out)
		leaves := int64(0)
		if onDisk && b.base != Disk {
			leaves = b.bytes[Disk]
		}
		disk += leaves
		for k := range out[:n] {
			take(&out[k], leaves)
			leaves = 0
		}
	}
	return disk
}

// prices finds the price of disk at which disk is just full, and the price of
// memory that goes with it, both in seconds per byte over the horizon.
func (t *slopeSums) prices(bundles []bundle, left room) (mem, disk float64) {
	used, mem := t.fill(bundles, 0, left.mem, 0)
	if used <= left.disk {
		return mem, 0
	}
	low, high := 0.0, 0.0
	for i := range bundles {
		if bundles[i].bytes[Disk] > 0 {
			high = math.Max(high, bundles[i].density(Disk))
		}
	}
	if left.disk == 0 {
		low = high
	}
	for range 40 {
		if high-low <= high*1e-5 {
			break
		}
		mid := (low + high) / 2
		used, _ = t.fill(bundles, mid, left.mem, left.disk)
		if used > left.disk {
			low = mid
			continue
		}
		high = mid
		if used >= left.disk-left.disk/1024 {
			break
		}
	}
	_, mem = t.fill(bundles, high, left.mem, 0)
	return mem, high
}
