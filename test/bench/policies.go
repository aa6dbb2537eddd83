package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
	"rankfs/shuffle/order"
	"rankfs/test/belady"
)

// Epochs of tables below run on the simulator's clock, with the planners of the
// cache: they are the same on every machine, and take no time of this one.

const mib = 1 << 20

// neutrino compares mckp with what Neutrino compares itself with, and with that:
// two sets of forty partitions of 128 MiB, equal or skewed, in its three
// scenarios and four patterns of access, twelve epochs each. Ranks do little but
// wait for data. Without a disk all have the same means; where there is disk for
// half of these, all-disk alone of the others uses it.
func neutrino(*bench) (misses int) {
	for _, skew := range []float64{0, 0.5} {
		for _, m := range rooms {
			for _, p := range patterns {
				s := m.scenario(p, skew)
				name := fmt.Sprintf("mckp / best of the others, data %s, %s, skew %g", m.name, p.name, skew)
				misses += contest(s, name+", disk for half", "all-ram", "all-packed", "dp25", "all-disk")
				s.Disk = 0
				misses += contest(s, name+", no disk", "all-ram", "all-packed", "dp25")
			}
		}
	}
	return misses
}

// A pattern is which of eighty partitions an epoch reads, in which order.
type pattern struct {
	name  string
	epoch func(rng *rand.Rand, k int) []uint32
}

var patterns = []pattern{
	{"iterate one", func(*rand.Rand, int) []uint32 { return fromTo(0, 40) }},
	{"alternate two", func(_ *rand.Rand, k int) []uint32 { return fromTo(k%2*40, k%2*40+40) }},
	{"growing set", func(_ *rand.Rand, k int) []uint32 { return fromTo(0, min(80, 8*(k+1))) }},
	{"random", func(rng *rand.Rand, _ int) (reads []uint32) {
		for _, p := range rng.Perm(80)[:40] {
			reads = append(reads, uint32(p))
		}
		return reads
	}},
}

func fromTo(from, to int) (reads []uint32) {
	for p := from; p < to; p++ {
		reads = append(reads, uint32(p))
	}
	return reads
}

// A room is memory for a share of the data that are read, as they are or packed.
type room struct {
	name   string
	packed bool
	share  float64
}

var rooms = []room{{"fit", false, 1.05}, {"fit packed", true, 1.05}, {"do not fit packed", true, 0.5}}

func (m room) scenario(p pattern, skew float64) simulate.Scenario {
	s := simulate.Scenario{
		Nodes: 1, Ranks: 2, Epochs: 12, Horizon: 12, Step: 0.05, Partitions: 80, Packed: 0.4, Cross: true,
		Costs: simulate.Costs{
			Source: 100 * mib, DiskRead: 400 * mib, DiskWrite: 200 * mib, Decode: 500 * mib, Encode: 200 * mib,
		},
	}
	rng := rand.New(rand.NewPCG(3, 5))
	for i := range s.Partitions {
		s.Bytes = append(s.Bytes, int64(128*mib*math.Exp(skew*rng.NormFloat64())))
		s.Sets = append(s.Sets, int32(i/40))
	}
	used, read := make([]bool, s.Partitions), 0.0
	for k := range s.Epochs {
		s.Reads = append(s.Reads, p.epoch(rng, k))
		for _, i := range s.Reads[k] {
			if !used[i] {
				used[i] = true
				read += float64(s.Bytes[i])
			}
		}
	}
	if m.packed {
		m.share *= s.Packed
	}
	s.Disk, s.Memory = int64(read/2), int64(m.share*read)+int64(s.Ranks)*4*128*mib // beside what is in use
	return s
}

// contest holds the time of mckp against that of the best of the others.
func contest(s simulate.Scenario, name string, others ...string) (misses int) {
	least, best := math.Inf(1), ""
	for _, other := range others {
		if t := lasts(under(s, other)); t < least {
			least, best = t, other
		}
	}
	return missed(outcome{name: name, values: []float64{lasts(under(s, "mckp")) / least}, target: 1.01, atMost: true, note: best})
}

func lasts(o simulate.Outcome) (sum float64) {
	for _, e := range o.Epochs {
		sum += e.Seconds
	}
	return sum
}

func under(s simulate.Scenario, name string) simulate.Outcome {
	_, err := policy.New(name)
	check(err)
	o, err := simulate.Run(context.Background(), s, func() policy.Policy {
		p, _ := policy.New(name)
		return p
	})
	check(err)
	return o
}

// hits are on the mean of all epochs, which have as many uses.
func hits(o simulate.Outcome) (share float64) {
	for _, e := range o.Epochs {
		share += e.Hits(policy.RAM) / float64(len(o.Epochs))
	}
	return share
}

// hitRatios compares what is found in memory over five epochs with what an
// offline optimum would find, and lru beside it.
func hitRatios(*bench) (misses int) {
	for _, name := range []string{"none", "window:100", "full"} {
		for _, share := range []float64{0.1, 0.25, 0.5, 0.9} {
			s := simulate.Scenario{
				Nodes: 1, Ranks: 1, Epochs: 5, Step: 0.01, Cross: true, Partitions: 1000, Bytes: []int64{mib}, Memory: int64(1000 * share * mib),
				Costs: simulate.Costs{Source: 100 * mib},
			}
			var err error
			s.Order, err = meta.ParseOrder(name)
			check(err)
			var uses []uint64
			for epoch := range s.Epochs {
				o := order.New(s.Order, uint64(s.Partitions), s.Seed, uint64(epoch))
				for p := range s.Partitions {
					uses = append(uses, o.At(uint64(p)))
				}
			}
			most := float64(belady.Hits(uses, int(s.Memory/mib))) / float64(len(uses))
			own, lru := hits(under(s, "mckp")), hits(under(s, "lru"))
			misses += missed(outcome{
				name: fmt.Sprintf("hits / offline optimum, 5 epochs, order=%s, cache %.0f%%", name, 100*share), values: []float64{own / most}, target: 0.99,
				note: fmt.Sprintf("%.4f of %.4f; lru %.4f, %.2f of it", own, most, lru, lru/most),
			})
		}
	}
	return misses
}
