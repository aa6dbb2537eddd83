package policy

import "math"

// A step takes a lot to a level that needs more memory. Slope is its gain for each
// byte more.
type step struct {
	slope float64
	lot   int32
	level Level
	bytes int64 // of memory, more than at the step before
}

// steps gives the steps of a lot from the level without memory that is better
// at this price of disk, or from its pin; onDisk says that it starts there.
func (l *lot) steps(price float64, out *[2]step) (n int, onDisk bool) {
	if l.base > Disk {
		return l.hull(l.gain[l.base], l.bytes[l.base], out), false
	}
	at := 0.0
	if l.bytes[Disk] >= 0 {
		at, onDisk = l.ground(price)
	}
	return l.hull(at, 0, out), onDisk
}

// hull gives the steps from a gain and the memory that it takes, ascending in
// memory and with falling slope: the upper convex hull of what is possible.
// What lies below it is never best at any price of memory.
func (l *lot) hull(at float64, mem int64, out *[2]step) int {
	a, b := Packed, RAM
	if l.bytes[b] < l.bytes[a] {
		a, b = b, a
	}
	first, last := l.step(a, at, mem), l.step(b, at, mem)
	switch {
	case first.slope <= 0 && last.slope <= 0:
		return 0
	case first.slope <= last.slope:
		out[0] = last
		return 1
	}
	out[0], out[1] = first, l.step(b, l.gain[a], l.bytes[a])
	if out[1].slope <= 0 {
		return 1
	}
	return 2
}

// step is the one to a level; its slope is zero if it leads nowhere.
func (l *lot) step(to Level, from float64, mem int64) step {
	s := step{level: to, bytes: l.bytes[to] - mem}
	if l.bytes[to] >= 0 && s.bytes >= 0 && to >= l.base && l.gain[to] > from {
		// What costs no bytes is the steepest of all.
		if s.slope = (l.gain[to] - from) * 1e9; s.bytes > 0 {
			s.slope = (l.gain[to] - from) / float64(s.bytes)
		}
	}
	return s
}

// ground is the best gain without memory.
func (l *lot) ground(price float64) (gain float64, onDisk bool) {
	gain = l.gain[Disk] - price*float64(l.bytes[Disk])
	if gain > 0 || l.base == Disk {
		return gain, true
	}
	return 0, false
}

// Slopes are sorted into buckets by their leading bits, 32 to each doubling,
// and those of one bucket by the next twelve bits: to find a price to five
// digits takes two passes over the lots and no sorting.
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

// A tally adds up steps by slope: the memory that they take and the disk that they leave.
type tally struct{ coarse, close sums }

type sums struct{ mem, disk [buckets]int64 }

func (s *sums) add(at int, mem, disk int64) {
	s.mem[at] += mem
	s.disk[at] += disk
}

// fill takes the steepest steps until memory is full. It returns the disk that they
// leave, the memory that is left, and the bucket at which it became full, -1 if none.
func (s *sums) fill(memory int64) (disk, left int64, at int) {
	for at = len(s.mem) - 1; at >= 0 && s.mem[at] <= memory; at-- {
		memory -= s.mem[at]
		disk += s.disk[at]
	}
	return disk, memory, at
}

// fill takes the steps with the best slopes until memory is full, the last
// ones in part: the optimum of the linear program at this price of disk. It
// says what disk is used then, and the price of memory; not exactly, if it is
// clear that disk does not come near its limit.
func (t *tally) fill(lots []lot, price float64, memory, limit int64) (disk int64, mem float64) {
	t.coarse = sums{}
	disk = each(lots, price, func(s *step, leaves int64) {
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
	each(lots, price, func(s *step, leaves int64) {
		if bucket(s.slope) == full {
			t.close.add(part(s.slope), s.bytes, leaves)
		}
	})
	more, left, in := t.close.fill(left)
	last := float64(left) / float64(t.close.mem[in]) * float64(t.close.disk[in])
	return disk - more - int64(last), middle(full, in)
}

// each calls take for all steps at a price of disk, with the disk that they
// leave, and gives the disk that is used before any of them.
func each(lots []lot, price float64, take func(s *step, leaves int64)) (disk int64) {
	var out [2]step
	for i := range lots {
		l := &lots[i]
		n, onDisk := l.steps(price, &out)
		leaves := int64(0)
		if onDisk && l.base != Disk {
			leaves = l.bytes[Disk]
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
func (t *tally) prices(lots []lot, left room) (mem, disk float64) {
	used, mem := t.fill(lots, 0, left.mem, 0)
	if used <= left.disk {
		return mem, 0
	}
	low, high := 0.0, 0.0
	for i := range lots {
		if lots[i].bytes[Disk] > 0 {
			high = math.Max(high, lots[i].density(Disk))
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
		used, _ = t.fill(lots, mid, left.mem, left.disk)
		if used > left.disk {
			low = mid
			continue
		}
		high = mid
		if used >= left.disk-left.disk/1024 {
			break
		}
	}
	_, mem = t.fill(lots, high, left.mem, 0)
	return mem, high
}
