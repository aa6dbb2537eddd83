package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/assign"
)

func TestStepIsWholeAndMostLocal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		d := c.step(t)
		checkWhole(t, c, d)
		_, local := c.cost(d)
		if want := mostLocal(c); local != want {
			t.Fatalf("%d positions are local, %d could be:\n%v", local, want, ranks(d))
		}
	})
}

// A strict division that is as local as any is left as it is.
func TestStepKeepsStrictWhereItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		if _, local := c.cost(c.strict); local == mostLocal(c) && !equal(c.step(t), c.strict) {
			t.Fatalf("strict is as local as any:\n got %v\nwant %v", ranks(c.step(t)), ranks(c.strict))
		}
	})
}

// Where locality cannot tell ranks apart the result is what meta.Cut says,
// for ranks in any place.
func TestStepWithoutLocalityIsStrict(t *testing.T) {
	everywhere := func(nodes int) (set []int32) {
		for node := range nodes {
			set = append(set, int32(node))
		}
		return set
	}
	tests := []struct {
		name   string
		nodeOf []int32
		holder []int32
	}{
		{"one node holds all and has all ranks", []int32{0, 0, 0, 0}, []int32{0}},
		{"one node has all ranks, others hold all", []int32{1, 1, 1, 1}, []int32{0, 2}},
		{"no node is known to hold anything", []int32{0, 0, 1, 1}, nil},
		{"all nodes hold all", []int32{0, 0, 1, 1}, everywhere(3)},
		{"the same, ranks dealt round", []int32{0, 1, 2, 0, 1, 2}, everywhere(3)},
		{"the same, nodes named backwards", []int32{2, 1, 0, 2}, everywhere(3)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cut := meta.Cut{N: 1001, Global: 100, Ranks: uint64(len(tt.nodeOf)), Tail: meta.TailPad}
			for _, step := range []uint64{0, 4, 10} {
				strict, err := assign.StrictStep(cut, step)
				if err != nil {
					t.Fatal(err)
				}
				c := caseOf{assign.Cluster{Nodes: 3, NodeOf: tt.nodeOf}, [][]int32{tt.holder}, make([]int32, 100), strict}
				d := c.step(t)
				for rank := range cut.Ranks {
					span := cut.Span(rank, step)
					list := d.Of(int(rank))
					if len(list) != int(span.Count) || uint64(list[0])+step*cut.Global != span.First || int(list[len(list)-1]-list[0]) != len(list)-1 {
						t.Errorf("rank %d of step %d reads %v, want %+v", rank, step, list, span)
					}
				}
			}
		})
	}
}

// Without racks an epoch is divided as a step is.
func TestEpochWithoutRacksIsAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		c.cluster.RackOf = nil
		if step, epoch := c.step(t), c.epoch(t); !equal(epoch.Division, step) {
			t.Fatalf("got %v, want %v", ranks(epoch.Division), ranks(step))
		}
	})
}

// A source that is read in its own order stays in runs.
func TestStepKeepsRuns(t *testing.T) {
	strict := contiguous(t, []int32{25, 25, 25, 25})
	tests := []struct {
		name   string
		nodeOf []int32
		chunks [][]int32 // of 50 positions each
		want   []string
	}{
		{"swapped", []int32{0, 0, 1, 1}, [][]int32{{1}, {0}}, []string{"50-74", "75-99", "0-24", "25-49"}},
		{"one chunk is everywhere", []int32{0, 0, 1, 1}, [][]int32{{0, 1}, {0}}, []string{"50-74", "75-99", "0-24", "25-49"}},
		{"all on one node", []int32{0, 0, 1, 1}, [][]int32{{1}, {1}}, []string{"0-24", "25-49", "50-74", "75-99"}},
		{"ranks dealt round", []int32{0, 1, 0, 1}, [][]int32{{0}, {1}}, []string{"0-24", "50-74", "25-49", "75-99"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := caseOf{assign.Cluster{Nodes: 2, NodeOf: tt.nodeOf}, tt.chunks, make([]int32, 100), strict}
			for position := range c.of {
				c.of[position] = int32(position / 50)
			}
			var got []string
			for _, list := range ranks(c.step(t)) {
				got = append(got, runs(list))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func runs(list []int32) (s string) {
	for i := 0; i < len(list); {
		first := i
		for i++; i < len(list) && list[i] == list[i-1]+1; i++ {
		}
		s += fmt.Sprintf(",%d-%d", list[first], list[i-1])
	}
	return s[min(1, len(s)):]
}

// What nodes and sets are called, and what a planner did before, make no
// difference.
func TestStepDependsOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase.Draw(t, "case")
		want := c.step(t)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		renamed := c.rename(r, r.Perm(c.cluster.Nodes))
		if got := renamed.step(t); !equal(got, want) {
			t.Fatalf("got %v, want %v, after\n%v\nbecame\n%v", ranks(got), ranks(want), c, renamed)
		}
	})
}

// One planner divides many steps, from many goroutines, as a fresh one does.
func TestPlannerIsShared(t *testing.T) {
	c := randomCase(8, 32, 3, 1, 2)
	c.cluster.RackOf = []int32{0, 0, 0, 1, 1, 1, 2, 2}
	p := c.planner(t)
	var wg sync.WaitGroup
	for worker := range 4 {
		r := rand.New(rand.NewPCG(uint64(worker), 3))
		var cases []caseOf
		var wantStep []assign.Division
		var wantEpoch []served
		for range 20 {
			one := c.another(t, r)
			cases, wantStep, wantEpoch = append(cases, one), append(wantStep, one.step(t)), append(wantEpoch, one.epoch(t))
		}
		wg.Go(func() {
			for i, one := range cases {
				step, err := p.Step(one.strict, one.of)
				if err != nil || !equal(step, wantStep[i]) {
					t.Errorf("step of a shared planner: %v, want %v (%v)", step, wantStep[i], err)
				}
				epoch, err := p.Epoch(one.strict, one.of)
				if err != nil || !equal(epoch, wantEpoch[i].Division) {
					t.Errorf("epoch of a shared planner: %v, want %v (%v)", epoch, wantEpoch[i], err)
				}
			}
		})
	}
	wg.Wait()
}

// randomCase is a step of nodes*each positions, each of which is held by some
// nodes at random, read by one rank a node.
func randomCase(nodes, each, replicas int, seed1, seed2 uint64) caseOf {
	r := rand.New(rand.NewPCG(seed1, seed2))
	c := caseOf{cluster: assign.Cluster{Nodes: nodes}}
	counts := make([]int32, nodes)
	for node := range nodes {
		c.cluster.NodeOf = append(c.cluster.NodeOf, int32(node))
		counts[node] = int32(each)
	}
	for position := range nodes * each {
		var set []int32
		for len(set) < replicas {
			if node := int32(r.IntN(nodes)); !slices.Contains(set, node) {
				set = append(set, node)
			}
		}
		c.holders, c.of = append(c.holders, set), append(c.of, int32(position))
	}
	c.strict, _ = assign.Contiguous(counts)
	return c
}

// At the sizes that jobs have, a step is as local as a maximum flow makes it.
func TestLocalShare(t *testing.T) {
	for _, nodes := range []int{4, 16, 64} {
		for replicas := 1; replicas <= 3; replicas++ {
			c := randomCase(nodes, 32, replicas, uint64(nodes), uint64(replicas))
			d := c.step(t)
			checkWhole(t, c, d)
			_, local := c.cost(d)
			_, fixed := c.cost(c.strict)
			best := matching(c)
			t.Logf("%2d nodes, 32 records each, %d replicas: local %.1f %%, best %.1f %%, fixed rank %.1f %%", nodes, replicas,
				100*float64(local)/float64(len(c.of)), 100*float64(best)/float64(len(c.of)), 100*float64(fixed)/float64(len(c.of)))
			if local != best {
				t.Errorf("%d nodes, %d replicas: %d of %d are local, %d could be", nodes, replicas, local, len(c.of), best)
			}
		}
	}
}

// matching is mostLocal where a matrix is too slow: positions are
// matched one by one, by Kuhn's search, to nodes, which take their ranks' shares.
func matching(c caseOf) (size int) {
	holds := make([][]int, c.cluster.Nodes) // by node: the positions that it reads
	share := make([]int, c.cluster.Nodes)
	for rank, node := range c.cluster.NodeOf {
		share[node] += len(c.strict.Of(rank))
	}
	var find func(position int, seen []bool) bool
	find = func(position int, seen []bool) bool {
		for _, node := range c.holders[c.of[position]] {
			if seen[node] {
				continue
			}
			seen[node] = true
			if len(holds[node]) < share[node] {
				holds[node] = append(holds[node], position)
				return true
			}
			for i, other := range holds[node] {
				if find(other, seen) {
					holds[node][i] = position
					return true
				}
			}
		}
		return false
	}
	for position := range c.of {
		if find(position, make([]bool, c.cluster.Nodes)) {
			size++
		}
	}
	return size
}
