package simulate_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

// A scatter has no reason for what it wants, but keeps to the budgets.
type scatter struct{ n uint32 }

func (s *scatter) Choose(p *policy.Problem, levels []policy.Level) {
	memory, disk := p.Memory, p.Disk
	for i := range p.Items {
		s.n = s.n*1664525 + 1013904223
		l := policy.Level(s.n>>16) % policy.Levels
		b := p.Items[i].Bytes[l]
		left := &memory
		if l == policy.Disk {
			left = &disk
		}
		if levels[i] = policy.Source; b >= 0 && b <= *left {
			levels[i] = l
			*left -= b
		}
	}
}

func (s *scatter) Worth(*policy.Item, float64) float64 {
	s.n = s.n*1664525 + 1013904223
	return float64(s.n)
}

func anyScenario(t *rapid.T) simulate.Scenario {
	size := rapid.Int64Range(1, 1<<20)
	s := simulate.Scenario{
		Nodes:      rapid.IntRange(1, 3).Draw(t, "nodes"),
		Ranks:      rapid.IntRange(1, 3).Draw(t, "ranks"),
		Epochs:     rapid.IntRange(1, 3).Draw(t, "epochs"),
		Step:       rapid.Float64Range(0, 0.1).Draw(t, "step"),
		Partitions: rapid.IntRange(1, 60).Draw(t, "partitions"),
		Packed:     rapid.SampledFrom([]float64{0, 0.3, 1.1}).Draw(t, "packed"),
		Grains:     rapid.IntRange(1, 4).Draw(t, "grains"),
		Batch:      rapid.IntRange(1, 5).Draw(t, "batch"),
		Order: rapid.SampledFrom([]meta.Order{
			{}, {Kind: meta.OrderFull}, {Kind: meta.OrderWindow, Window: 5},
		}).Draw(t, "order"),
		Tail:     rapid.SampledFrom([]meta.Tail{meta.TailKeep, meta.TailDrop, meta.TailPad}).Draw(t, "tail"),
		First:    rapid.Uint64Max(3).Draw(t, "first"),
		Near:     rapid.Bool().Draw(t, "near"),
		Once:     rapid.Bool().Draw(t, "once"),
		Workers:  rapid.IntRange(1, 4).Draw(t, "workers"),
		MaxAhead: rapid.IntRange(1, 20).Draw(t, "ahead"),
		Lockstep: rapid.Bool().Draw(t, "lockstep"),
		Cross:    rapid.Bool().Draw(t, "cross"),
		Choices:  rapid.IntRange(1, 10).Draw(t, "plans"),
	}
	if s.Partitions*s.Grains < s.Nodes*s.Ranks*s.Batch {
		s.Tail = meta.TailKeep
	}
	if rapid.Bool().Draw(t, "reads") {
		s.Tail, s.Reads = meta.TailKeep, anyReads(t, s)
	}
	s.Horizon = rapid.IntRange(0, 3).Draw(t, "horizon")
	s.Sets = rapid.SliceOfN(rapid.Int32Range(0, 2), s.Partitions, s.Partitions).Draw(t, "sets")
	s.Bytes = []int64{size.Draw(t, "bytes")}
	if rapid.Bool().Draw(t, "different") {
		s.Bytes = rapid.SliceOfN(size, s.Partitions, s.Partitions).Draw(t, "sizes")
	}
	s.Memory = 5<<20 + rapid.Int64Range(0, 40<<20).Draw(t, "memory")
	s.Disk = rapid.SampledFrom([]int64{0, 1 << 20, 1 << 30}).Draw(t, "disk")
	rate := func(name string) float64 {
		return rapid.SampledFrom([]float64{0, 1 << 20, 30 << 20, 1 << 30}).Draw(t, name)
	}
	s.Costs = simulate.Costs{
		Source: rate("source"), Stream: rate("stream"), Link: rate("link"),
		DiskRead: rate("read"), DiskWrite: rate("write"), Decode: rate("decode"), Encode: rate("encode"),
		Latency: rapid.Float64Range(0, 0.1).Draw(t, "latency"), LinkLatency: rapid.Float64Range(0, 0.01).Draw(t, "hop"),
		Settle: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "settle"),
	}
	return s
}

// anyReads is some of the grains for each epoch, in any order.
func anyReads(t *rapid.T, s simulate.Scenario) [][]uint32 {
	all := make([]uint32, s.Partitions*s.Grains)
	for g := range all {
		all[g] = uint32(g)
	}
	var reads [][]uint32
	for range s.Epochs {
		n := rapid.IntRange(1, len(all)).Draw(t, "of an epoch")
		reads = append(reads, rapid.Permutation(all).Draw(t, "order of an epoch")[:n])
	}
	return reads
}

func anyPolicy(t *rapid.T) func() policy.Policy {
	name := rapid.SampledFrom(append([]string{"a stub that is lru", "belady", "scatter"}, policy.Names()...)).Draw(t, "policy")
	switch name {
	case "a stub that is lru":
		return byLRU
	case "belady":
		return byBelady
	case "scatter":
		return func() policy.Policy { return &scatter{} }
	}
	return func() policy.Policy {
		p, err := policy.New(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// Whatever the scenario: RunChecked finds no resource above its rate, no budget
// exceeded and no time that goes back; every rank gets every byte; and it comes
// to the same when it is done again.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, by := anyScenario(t), anyPolicy(t)
		o, err := simulate.RunChecked(s, by)
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.Epochs {
			checkEpoch(t, s, i, &o.Epochs[i])
		}
		again, err := simulate.Run(t.Context(), s, by)
		if err != nil || !reflect.DeepEqual(o, again) {
			t.Fatalf("again: %+v, %v; was %+v", again, err, o)
		}
	})
}

func checkEpoch(t *rapid.T, s simulate.Scenario, epoch int, e *simulate.Epoch) {
	n, whole := size(s, epoch)
	cut := meta.Cut{N: uint64(n), Global: uint64(s.Nodes * s.Ranks * s.Batch), Ranks: uint64(s.Nodes * s.Ranks), Tail: s.Tail}
	if want := int64(cut.Steps() * cut.Ranks); e.Opens != want {
		t.Fatalf("%d opens, want %d", e.Opens, want)
	}
	if e.Waited > e.Opens {
		t.Fatalf("%d of %d waited", e.Waited, e.Opens)
	}
	used := int64(0)
	for _, b := range e.Bytes {
		used += b
	}
	if s.Tail == meta.TailKeep && used != whole {
		t.Fatalf("%d bytes used, the epoch has %d", used, whole)
	}
	ranks, stall := float64(s.Nodes*s.Ranks), 0.0
	for _, c := range e.Stall {
		if c < 0 {
			t.Fatalf("stalls %v", e.Stall)
		}
		stall += c
	}
	if e.Working+stall+e.Meet > ranks*e.Seconds*(1+1e-9)+1e-9 {
		t.Fatalf("%v s of work and %v s of stalls in %v s of %v ranks", e.Working, stall, e.Seconds, ranks)
	}
	if s.Costs.Source > 0 && !s.Cross && float64(e.Fetched) > s.Costs.Source*e.Seconds*(1+1e-9)+1 {
		t.Fatalf("%d bytes fetched in %v s", e.Fetched, e.Seconds)
	}
}

// size is how many grains the longest epoch has, and how many bytes this one.
func size(s simulate.Scenario, epoch int) (grains int, bytes int64) {
	of := func(g int) int64 {
		b, i, n := s.Bytes[g/s.Grains%len(s.Bytes)], int64(g%s.Grains), int64(s.Grains)
		return b*(i+1)/n - b*i/n
	}
	if s.Reads == nil {
		for g := range s.Partitions * s.Grains {
			bytes += of(g)
		}
		return s.Partitions * s.Grains, bytes
	}
	for _, reads := range s.Reads {
		grains = max(grains, len(reads))
	}
	for _, g := range s.Reads[epoch] {
		bytes += of(int(g))
	}
	return grains, bytes
}
