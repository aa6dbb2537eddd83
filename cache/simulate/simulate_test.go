package simulate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

// A soonest wants nothing moved, and keeps what is used soonest.
type soonest struct{}

func (soonest) Choose(p *policy.Problem, levels []policy.Level) {
	for i := range p.Items {
		levels[i] = p.Items[i].Now
	}
}
func (soonest) Worth(_ *policy.Item, next float64) float64 {
	return math.Max(-next, -1e18)
}

// An lru keeps what was used last.
type lru struct{ soonest }

func (lru) Worth(i *policy.Item, _ float64) float64 { return i.Last }

func byLRU() policy.Policy    { return lru{} }
func byBelady() policy.Policy { return soonest{} }

const mib = 1 << 20

// small is a job of one rank with batches of 1 MiB at 100 a second.
func small() simulate.Scenario {
	return simulate.Scenario{
		Nodes: 1, Ranks: 1, Epochs: 3, Step: 0.01, Partitions: 1000, Bytes: []int64{mib}, Memory: 64 * mib,
		Costs: simulate.Costs{Source: 200 * mib, Latency: 0.002},
	}
}

func must(t *testing.T, s simulate.Scenario, by func() policy.Policy) simulate.Outcome {
	t.Helper()
	o, err := simulate.RunChecked(s, by)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, by)
	}
}

func TestComputeIsTheTimeIfTheSourceIsFaster(t *testing.T) {
	o := must(t, small(), byLRU)
	for i, e := range o.Epochs {
		first := 1.0/200 + 0.002 // twice: what comes second shares the source with the first
		near(t, "epoch", e.Seconds, 1000*0.01+2*first, first)
		if e.Fetched != 1000*mib || e.Opens != 1000 {
			t.Errorf("epoch %d: %d bytes, %d opens", i, e.Fetched, e.Opens)
		}
	}
}

func TestBytesAreTheTimeIfTheSourceIsSlower(t *testing.T) {
	s := small()
	s.Costs.Source, s.Costs.Latency = 50*mib, 0
	o := must(t, s, byLRU)
	for _, e := range o.Epochs {
		near(t, "epoch", e.Seconds, 1000.0/50+0.002+0.01, 0.1)
		near(t, "stall", e.Stalled(), 0.5, 0.01)
		near(t, "stall for the source", e.Stall[simulate.Source]+e.Stall[simulate.Admission], 10, 0.1)
	}
}

// However few workers there are at first, there are as many as a latency asks for.
func TestLatencyHidesBehindFills(t *testing.T) {
	s := small()
	s.Costs.Source, s.Costs.Latency, s.Step = 0, 0.1, 0.01
	for _, workers := range []int{1, 2, 5} {
		s.Workers = workers
		o := must(t, s, byLRU)
		near(t, "epoch", o.Last().Seconds, 1000*0.01, 0.3)
	}
}

func TestInMemoryNothingIsWaitedFor(t *testing.T) {
	s := small()
	s.Memory = 1000 * mib
	for _, by := range []func() policy.Policy{byLRU, byBelady} {
		o := must(t, s, by)
		e := o.Last()
		near(t, "epoch", e.Seconds, 10, 1e-9)
		if e.Waited > 0 || e.Fetched > 0 || e.Hits(policy.RAM) != 1 {
			t.Errorf("%+v", e)
		}
	}
}

func TestCyclicScan(t *testing.T) {
	s := small()
	s.Memory = 500 * mib
	if e := must(t, s, byLRU).Last(); e.Hits(policy.RAM) != 0 || e.Uses[policy.Source] != 1000 {
		t.Errorf("lru: %+v", e)
	}
	e := must(t, s, byBelady).Last()
	// What is open and what is made ready takes the place of a few.
	if hits := e.Hits(policy.RAM); hits > 0.5 || hits < 0.49 {
		t.Errorf("belady: hits of %v with half of it in memory", hits)
	}
	if e.Fetched != e.Bytes[policy.Source] {
		t.Errorf("%d bytes fetched, %d used", e.Fetched, e.Bytes[policy.Source])
	}
}

// The policies of the cache come to what is known of them on a cyclic scan.
func TestPoliciesOnACyclicScan(t *testing.T) {
	s := small()
	s.Memory = 500 * mib
	for name, want := range map[string]float64{"mckp": 0.5, "interval": 0.5, "mrd": 0.5, "lru": 0, "all-ram": 0} {
		e := must(t, s, named(t, name)).Last()
		near(t, name+": hits", e.Hits(policy.RAM), want, 0.02)
		if e.Fetched != e.Bytes[policy.Source] {
			t.Errorf("%s: %d bytes fetched, %d used", name, e.Fetched, e.Bytes[policy.Source])
		}
	}
}

func TestOnceKeepsNothing(t *testing.T) {
	s := small()
	s.Once, s.Memory, s.Order = true, 2000*mib, meta.Order{Kind: meta.OrderFull}
	for _, e := range must(t, s, byBelady).Epochs {
		if e.Fetched != 1000*mib || e.Hits(policy.Source) != 1 {
			t.Errorf("%+v", e)
		}
	}
}

func TestPeersSendWhatTheyKeep(t *testing.T) {
	s := small()
	s.Nodes, s.Ranks, s.Memory, s.Order = 4, 2, 500*mib, meta.Order{Kind: meta.OrderFull}
	s.Costs.Link = 1000 * mib
	o := must(t, s, byBelady)
	for i, e := range o.Epochs {
		near(t, "bytes from others", float64(e.Peers), 750*mib, 40*mib)
		if i > 0 && e.Fetched > 0 || i == 0 && e.Fetched != 1000*mib {
			t.Errorf("epoch %d: %d bytes fetched", i, e.Fetched)
		}
	}
}

func TestLinksSetThePace(t *testing.T) {
	s := small()
	s.Nodes, s.Memory, s.Order = 2, 1000*mib, meta.Order{Kind: meta.OrderFull}
	s.Step, s.Costs.Link, s.Workers = 0, 10*mib, 8
	e := must(t, s, byBelady).Last()
	near(t, "bytes of peers a second", float64(e.Peers)/e.Seconds/(20*mib), 0.9, 0.11)
	near(t, "stall for peers", e.Stall[simulate.Peer]/(e.Stall[simulate.Peer]+e.Stall[simulate.Admission]), 1, 0.5)
}

func TestGatheredBatchesFetchEachPartOnce(t *testing.T) {
	s := small()
	s.Partitions, s.Bytes, s.Grains, s.Batch = 20, []int64{64 * mib}, 64, 8
	s.Order, s.Memory = meta.Order{Kind: meta.OrderFull}, 20*64*mib+20*8*mib
	o := must(t, s, byLRU)
	if f := o.Epochs[0].Fetched; f != 20*64*mib {
		t.Errorf("%d bytes fetched", f)
	}
	if e := o.Last(); e.Fetched != 0 || e.Hits(policy.RAM) != 1 || e.Opens != 160 {
		t.Errorf("%+v", e)
	}
}

// A window shuffles blocks that lie across two partitions each, so without a
// cache each partition is fetched about twice.
func TestWindowOfOrder(t *testing.T) {
	s := small()
	s.Partitions, s.Bytes, s.Grains, s.Batch = 200, []int64{8 * mib}, 8, 2
	s.Order, s.Memory = meta.Order{Kind: meta.OrderWindow, Window: 64}, 60*8*mib
	fetched := func(by func() policy.Policy) (sum float64) {
		for _, e := range must(t, s, by).Epochs {
			sum += float64(e.Fetched) / float64(200*8*mib)
		}
		return sum / float64(s.Epochs)
	}
	near(t, "bytes fetched by lru", fetched(byLRU), 2, 0.2)
	near(t, "bytes fetched by belady", fetched(byBelady), 2*(1-60.0/200), 0.2)
}

// towards wants all that is at one level at another.
type towards struct {
	soonest
	to policy.Level
}

func (w towards) Choose(p *policy.Problem, levels []policy.Level) {
	for i := range levels {
		levels[i] = w.to
	}
}

func TestMovesFollowTheChoice(t *testing.T) {
	s := small()
	s.Memory, s.Disk, s.Packed = 600*mib, 2000*mib, 0.25
	s.Costs.DiskRead, s.Costs.DiskWrite, s.Costs.Decode, s.Costs.Encode = 500*mib, 300*mib, 800*mib, 400*mib
	for _, to := range []policy.Level{policy.Disk, policy.Packed} {
		o := must(t, s, func() policy.Policy { return towards{to: to} })
		e := o.Last()
		if e.Hits(to) < 0.95 || e.Fetched > 50*mib {
			t.Errorf("level %d: %+v", to, e)
		}
		near(t, "epoch", e.Seconds, 10, 0.2)
	}
}

func TestSlowDiskSetsThePace(t *testing.T) {
	s := small()
	s.Memory, s.Disk = 100*mib, 2000*mib
	s.Costs.DiskRead, s.Costs.DiskWrite = 50*mib, 500*mib
	e := must(t, s, func() policy.Policy { return towards{to: policy.Disk} }).Last()
	near(t, "epoch", e.Seconds, float64(e.Read)/(50*mib), 0.3)
	if e.Stall[simulate.Disk] < e.Stall[simulate.Source] {
		t.Errorf("%+v", e)
	}
}

func TestCrossingTheEdgeSavesTheStart(t *testing.T) {
	s := small()
	s.Costs.Latency, s.Workers = 0.1, 40
	without := must(t, s, byLRU).Last()
	s.Cross = true
	with := must(t, s, byLRU).Last()
	if with.Waited > 0 || without.Waited == 0 || with.Seconds >= without.Seconds {
		t.Errorf("%v s, %d waited; %v s, %d waited without", with.Seconds, with.Waited, without.Seconds, without.Waited)
	}
}

// Apart, a rank that waits for a slow batch catches up later; in lockstep all
// wait for it.
func TestInLockstepAllWaitForTheSlowest(t *testing.T) {
	s := small()
	s.Ranks, s.Memory, s.Bytes = 2, 300*mib, make([]int64, 1000)
	for i := range s.Bytes {
		s.Bytes[i] = mib / 8
		if i%160 == 0 || i%160 == 81 { // now and then one, by turns
			s.Bytes[i] = 60 * mib
		}
	}
	s.Costs.Source, s.Costs.Stream, s.Workers = 0, 150*mib, 4
	apart := must(t, s, byLRU).Last()
	s.Lockstep = true
	together := must(t, s, byLRU).Last()
	if together.Seconds < 1.15*apart.Seconds || together.Fetched != apart.Fetched {
		t.Errorf("%v s apart, %v s together", apart.Seconds, together.Seconds)
	}
}

func TestPlanIsWaitedForAtTheEdge(t *testing.T) {
	s := small()
	s.Memory, s.Costs.Settle = 1000*mib, 0.3
	e := must(t, s, byLRU).Last()
	near(t, "epoch", e.Seconds, 10.3, 1e-9)
	near(t, "stall", e.Stall[simulate.Plan], 0.3, 1e-9)
}

func TestWhatCannotBeSimulated(t *testing.T) {
	for name, change := range map[string]func(*simulate.Scenario){
		"nodes":           func(s *simulate.Scenario) { s.Nodes = 0 },
		"ranks":           func(s *simulate.Scenario) { s.Ranks = 1 << 20 },
		"epochs":          func(s *simulate.Scenario) { s.Epochs = -1 },
		"partitions":      func(s *simulate.Scenario) { s.Partitions = 1 << 30 },
		"grains":          func(s *simulate.Scenario) { s.Grains = 1 << 40 },
		"batches ahead":   func(s *simulate.Scenario) { s.MaxAhead = 1000 },
		"no time":         func(s *simulate.Scenario) { s.Step = math.NaN() },
		"of 2 partitions": func(s *simulate.Scenario) { s.Bytes = make([]int64, 2) },
		"budgets":         func(s *simulate.Scenario) { s.Disk = -1 },
		"partition of":    func(s *simulate.Scenario) { s.Bytes = []int64{-1} },
		"tail=drop":       func(s *simulate.Scenario) { s.Batch, s.Tail = 10_000, meta.TailDrop; s.Memory = 1 << 40 },
		"reads of":        func(s *simulate.Scenario) { s.Reads = [][]uint32{{1}} },
		"reads grain":     func(s *simulate.Scenario) { s.Reads = [][]uint32{{1}, {1, 2, 1}, {1}} },
		"sets of":         func(s *simulate.Scenario) { s.Sets = make([]int32, 2) },
		"epochs to see":   func(s *simulate.Scenario) { s.Horizon = 100 },
		"give it more":    func(s *simulate.Scenario) { s.Memory = mib - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := small()
			change(&s)
			if _, err := simulate.Run(t.Context(), s, byLRU); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Run(ctx, small(), byLRU); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Ranks that read what is near ask other nodes for little: of a shuffled step what is
// more on one node than its ranks read, of whole partitions nothing. How much they read
// and what comes from the source is the same.
func TestNearRanksAskForLittle(t *testing.T) {
	for _, test := range []struct {
		name            string
		grains, batch   int
		strict, nearest float64 // shares of the bytes that come from other nodes
	}{{"records", 64, 16, 0.75, 0.06}, {"whole partitions", 1, 1, 0.75, 0}} {
		s := small()
		s.Nodes, s.Ranks, s.Memory, s.Order, s.Costs.Link = 4, 2, 2000*mib, meta.Order{Kind: meta.OrderFull}, 1000*mib
		s.Grains, s.Batch = test.grains, test.batch
		far := must(t, s, byBelady).Last()
		s.Near = true
		e := must(t, s, byBelady).Last()
		near(t, test.name+" of other nodes, fixed ranks", float64(far.Peers)/(1000*mib), test.strict, 0.04)
		near(t, test.name+" of other nodes", float64(e.Peers)/(1000*mib), test.nearest, 0.02)
		if e.Opens != far.Opens || e.Fetched != far.Fetched {
			t.Errorf("%s: %d opens and %d bytes from the source, of fixed ranks %d and %d", test.name, e.Opens, e.Fetched, far.Opens, far.Fetched)
		}
	}
}
