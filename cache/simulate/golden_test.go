package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/cache/policy"
	"rankfs/cache/simulate"
	"rankfs/meta"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The outcomes of a few scenarios when they were last reviewed. A change is no mistake by
// itself, but one to be understood.
func TestOutcomes(t *testing.T) {
	full := meta.Order{Kind: meta.OrderFull}
	var b strings.Builder
	for _, c := range []struct {
		name   string
		change func(*simulate.Scenario)
	}{
		{"one rank, the source is fast", func(*simulate.Scenario) {}},
		{"one rank, the source is slow, half fits", func(s *simulate.Scenario) {
			s.Costs.Source, s.Memory = 50*mib, 500*mib
		}},
		{"two nodes of two ranks, shuffled", func(s *simulate.Scenario) {
			s.Nodes, s.Ranks, s.Order, s.Memory, s.Costs.Link = 2, 2, full, 400*mib, 100*mib
		}},
		{"batches of chunks, shuffled", func(s *simulate.Scenario) {
			s.Partitions, s.Bytes, s.Grains, s.Batch, s.Order = 32, []int64{32 * mib}, 32, 4, full
			s.Memory, s.Ranks = 900*mib, 2
		}},
		{"disk and packed beside little memory", func(s *simulate.Scenario) {
			s.Ranks, s.Memory, s.Disk, s.Packed = 4, 300*mib, 500*mib, 0.4
			s.Costs.DiskRead, s.Costs.DiskWrite, s.Costs.Decode, s.Costs.Encode = 300*mib, 150*mib, 200*mib, 50*mib
		}},
		{"across the edge, with a plan to wait for", func(s *simulate.Scenario) {
			s.Cross, s.Costs.Settle, s.Costs.Source = true, 0.3, 105*mib
		}},
	} {
		s := small()
		c.change(&s)
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, p := range []struct {
			name string
			new  func() policy.Policy
		}{{"lru", byLRU}, {"belady", byBelady}} {
			o := must(t, s, p.new)
			for i := range o.Epochs {
				fmt.Fprintf(&b, "  %-6s %d %s\n", p.name, i+1, line(&o.Epochs[i]))
			}
		}
	}
	golden(t, "outcomes", b.String())
}

// What each policy of the cache comes to, twice as much data as memory: the last
// of three epochs.
func TestPolicies(t *testing.T) {
	full := meta.Order{Kind: meta.OrderFull}
	var b strings.Builder
	for _, c := range []struct {
		name   string
		change func(*simulate.Scenario)
	}{
		{"in order, memory alone", func(*simulate.Scenario) {}},
		{"shuffled, memory alone", func(s *simulate.Scenario) { s.Order = full }},
		{"shuffled, sizes differ", func(s *simulate.Scenario) {
			s.Order, s.Bytes = full, make([]int64, s.Partitions)
			for i := range s.Bytes {
				s.Bytes[i] = int64(1+i%9) * mib / 5
			}
		}},
		{"shuffled, packed and disk", func(s *simulate.Scenario) {
			s.Order, s.Packed, s.Disk = full, 0.4, 50*mib
			s.Costs.DiskRead, s.Costs.DiskWrite, s.Costs.Decode, s.Costs.Encode = 300*mib, 150*mib, 200*mib, 50*mib
		}},
		{"four nodes, shuffled", func(s *simulate.Scenario) {
			s.Nodes, s.Memory, s.Order, s.Costs.Link = 4, 25*mib, full, 100*mib
		}},
		{"batches of chunks, shuffled", func(s *simulate.Scenario) {
			s.Partitions, s.Bytes, s.Grains, s.Batch, s.Order = 25, []int64{8 * mib}, 8, 2, full
		}},
	} {
		fmt.Fprintf(&b, "%s\n", c.name)
		for _, name := range policy.Names() {
			s := small()
			s.Ranks, s.Partitions, s.Memory, s.Cross, s.Costs.Source = 2, 200, 100*mib, true, 50*mib
			c.change(&s)
			fmt.Fprintf(&b, "  %-10s %s\n", name, line(must(t, s, named(t, name)).Last()))
		}
	}
	golden(t, "policies", b.String())
}

// golden compares with what is in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func line(e *simulate.Epoch) string {
	stall := make([]string, simulate.Causes)
	for c := range simulate.Causes {
		stall[c] = fmt.Sprintf("%v %.2f", c, e.Stall[c])
	}
	return fmt.Sprintf("%6.2f s  ram %.3f packed %.3f disk %.3f source %.3f  fetched %d peers %d MiB  waited %d  %s  evicted %d moved %d",
		e.Seconds, e.Hits(policy.RAM), e.Hits(policy.Packed), e.Hits(policy.Disk), e.Hits(policy.Source),
		e.Fetched/mib, e.Peers/mib, e.Waited, strings.Join(stall, ", "), e.Evictions, e.Moves)
}
