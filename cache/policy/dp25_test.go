package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// naive is the dynamic program as it is written down: all transitions of two
// sets from every state, pass by pass, without collapsing any.
func naive(n *dp25, memory float64) (best float64) {
	after := make([]float64, mixes*mixes)
	for j := len(n.schedule) - 1; j >= 0; j-- {
		for range n.schedule[j].times {
			before := make([]float64, mixes*mixes)
			for u := range before {
				before[u] = math.Inf(1)
				for v := range after {
					a, b := &n.sets[0], &n.sets[1]
					if a.memory(allMixes[v%mixes])+b.memory(allMixes[v/mixes]) <= memory {
						before[u] = min(before[u], a.cost(n.schedule[j].used[0], u%mixes, v%mixes)+
							b.cost(n.schedule[j].used[1], u/mixes, v/mixes)+after[v])
					}
				}
			}
			after = before
		}
	}
	return after[n.sets[0].now+mixes*n.sets[1].now]
}

// Set by set the program finds what it finds over all mixes. A pass that
// repeats is solved once, and may be worse by what changes in its midst.
func TestDP25(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &dp25{}
		for range 2 {
			size, load := rapid.Float64Range(1, 10).Draw(t, "size"), rapid.Float64Range(1, 10).Draw(t, "load")
			n.sets = append(n.sets, set{packs: true, pack: load / 5, now: rapid.IntRange(0, mixes-1).Draw(t, "now"),
				bytes: [Levels]float64{0, size, size / 2, size}, wait: [Levels]float64{load, load / 3, load / 6, 0}})
		}
		memory := rapid.Float64Range(0, 20).Draw(t, "memory")
		for range rapid.IntRange(1, 4).Draw(t, "passes") {
			n.append([]float64{float64(rapid.IntRange(0, 1).Draw(t, "a")), float64(rapid.IntRange(0, 1).Draw(t, "b"))})
		}
		best, once := naive(n, memory), true
		for _, s := range n.schedule {
			once = once && s.times == 1
		}
		_, got := n.solve(memory)
		if got < best-1e-9 || once && got > best+1e-9 {
			t.Fatalf("%g seconds, and %g by the naive program", got, best)
		}
	})
}
