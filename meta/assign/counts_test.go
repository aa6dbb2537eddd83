package assign

import "slices"

// A Tally counts what a division makes ranks read.
type Tally struct {
	Positions [3]uint64 // by Distance
	Bytes     [3]uint64 // by Distance
	Ranks     uint64
	Most      uint64 // bytes of the rank that reads most
}

// Balance is how much more the rank that reads most reads than the mean: 1 if
// all read as much.
func (t Tally) Balance() float64 {
	sum := t.Bytes[Local] + t.Bytes[Rack] + t.Bytes[Remote]
	if sum == 0 {
		return 1
	}
	return float64(t.Most) * float64(t.Ranks) / float64(sum)
}

// LocalShare is the share of positions that are local: 1 if there are none.
func (t Tally) LocalShare() float64 {
	sum := t.Positions[Local] + t.Positions[Rack] + t.Positions[Remote]
	if sum == 0 {
		return 1
	}
	return float64(t.Positions[Local]) / float64(sum)
}

// A Report compares a division with what assign=strict would have been.
type Report struct{ Plan, Strict Tally }

// Report says what came of dividing positions of the given sizes: what is
// local, how far the rest is, and how even the ranks' bytes are. Both
// divisions have as many ranks as the planner, and position i is in set of[i].
func (p *Planner) Report(of []int32, plan, strict Division, size func(position int) uint64) Report {
	return Report{p.tally(of, plan, size), p.tally(of, strict, size)}
}

func (p *Planner) tally(of []int32, d Division, size func(int) uint64) Tally {
	t := Tally{Ranks: uint64(d.Ranks())}
	for rank, node := range p.nodeOf {
		sum := uint64(0)
		for _, position := range d.Of(rank) {
			distance, bytes := p.distance(p.kindOf[of[position]], node), size(int(position))
			t.Positions[distance]++
			t.Bytes[distance] += bytes
			sum += bytes
		}
		t.Most = max(t.Most, sum)
	}
	return t
}

func (p *Planner) distance(k, node int32) Distance {
	targets := p.kinds.At(k)
	if _, found := slices.BinarySearch(targets, node); found {
		return Local
	}
	if rack := p.rackOf[node]; rack >= 0 {
		if _, found := slices.BinarySearch(targets, int32(len(p.outer))+rack); found {
			return Rack
		}
	}
	return Remote
}

func (d Distance) String() string {
	return [...]string{"local", "rack", "remote"}[d]
}
