package policy

import (
	"cmp"
	"math"
	"slices"
)

const (
	setLimit  = 4 // 50,625 states
	passLimit = 64
)

// A pass is a run of uses in which no item comes twice, as often as it
// repeats: what Neutrino calls a job.
type pass struct {
	used  []float64 // part of each set
	times int
}

// Dp25 is Neutrino's dynamic program: before each pass every set gets a mix of
// quarters, so that all passes together take the least time. A set that the
// pass does not use can only be discarded from; one that it uses can be turned
// into any mix, what is packed anew costs the work of it, and the waits are
// those of the mix before. Disk is not used.
//
// The cost of a transition is a sum over sets, so the minimum over all mixes of
// R sets is taken set by set: R*15^(R+1) operations instead of 15^(2R), and no
// state has to be left out for being dominated. Left out are states that do
// not fit, and mixes of sets that no later pass uses; passes that repeat are
// solved once. Beyond setLimit sets, those that save most by their uses are
// planned, and each of the others gets RAM, or else packed memory, if it fits
// as a whole in what is left. Beyond passLimit passes nothing is looked at.
type dp25 struct {
	future   forecast
	draft    draft
	sets     []set
	schedule []pass
}

func (n *dp25) Choose(p *Problem, levels []Level) {
	n.future.learn(p)
	n.draft.begin(p, &n.future, 0)
	n.gather(p)
	n.passes(p)
	planned, _ := n.solve(float64(n.draft.left.mem))
	for r, m := range planned {
		n.fill(&n.sets[r], m)
	}
	for r := len(planned); r < len(n.sets); r++ {
		n.whole(&n.sets[r])
	}
	n.draft.finish(levels)
}

func (n *dp25) Worth(i *Item, _ float64) float64 {
	if i.Stays() {
		return math.Inf(1)
	}
	return packedFirst(i)
}

// gather sums up the items of each set, those that save most first.
func (n *dp25) gather(p *Problem) {
	n.sets = n.sets[:0]
	at := map[int32]int{}
	for i := range p.Items {
		k, ok := at[p.Items[i].Series]
		if !ok {
			k = len(n.sets)
			at[p.Items[i].Series] = k
			n.sets = append(n.sets, set{packs: true})
		}
		n.sets[k].add(&p.Items[i], int32(i), n.future.known(int32(i)))
	}
	for k := range n.sets {
		n.sets[k].order(p)
	}
	slices.SortStableFunc(n.sets, func(a, b set) int { return cmp.Compare(b.worth, a.worth) })
}

// passes cuts the uses where an item comes again.
func (n *dp25) passes(p *Problem) {
	n.schedule = n.schedule[:0]
	of := make([]int, len(p.Items))
	for k := range n.sets {
		for _, i := range n.sets[k].items {
			of[i] = k
		}
	}
	seen, current := make([]int, len(p.Items)), 0
	used := make([]float64, len(n.sets))
	for _, u := range p.Uses {
		if seen[u.Item] == current+1 {
			if n.append(used); len(n.schedule) == passLimit {
				return
			}
			current++
			used = make([]float64, len(n.sets))
		}
		seen[u.Item] = current + 1
		used[of[u.Item]] += 1 / float64(len(n.sets[of[u.Item]].items))
	}
	n.append(used)
}

func (n *dp25) append(used []float64) {
	if last := len(n.schedule) - 1; last >= 0 && slices.Equal(n.schedule[last].used, used) {
		n.schedule[last].times++
		return
	}
	n.schedule = append(n.schedule, pass{used, 1})
}

// solve gives the mixes for the first pass: those that there are if no others
// are better. It says what all passes take.
func (n *dp25) solve(memory float64) (out []mix, seconds float64) {
	sets := n.sets[:min(len(n.sets), setLimit)]
	states := 1
	for range sets {
		states *= mixes
	}
	value := make([]float64, states)
	for j := len(n.schedule) - 1; j > 0; j-- {
		n.repeat(value, sets, j, memory)
		for r, each := 0, 1; r < len(sets); r, each = r+1, each*mixes {
			relax(value, each, &sets[r], n.schedule[j].used[r])
		}
	}
	n.repeat(value, sets, 0, memory)
	chosen := n.here(sets)
	best := n.total(value, sets, chosen)
	// Mixes with more in RAM have the larger numbers.
	for state := states - 1; state >= 0; state-- {
		if total := n.total(value, sets, state); total < best-1e-9*math.Abs(best) || math.IsInf(best, 1) {
			best, chosen = total, state
		}
	}
	for range sets {
		out, chosen = append(out, allMixes[chosen%mixes]), chosen/mixes
	}
	return out, best
}

// here is the state that there is, without sets that are not used again.
func (n *dp25) here(sets []set) (state int) {
	dead := n.dead(0)
	for r, each := 0, 1; r < len(sets); r, each = r+1, each*mixes {
		if !dead[r] {
			state += sets[r].now * each
		}
	}
	return state
}

// total is the time of all passes from now on if the next state is the given one.
func (n *dp25) total(value []float64, sets []set, state int) float64 {
	total := value[state]
	for r := 0; r < len(sets); r, state = r+1, state/mixes {
		total += sets[r].cost(n.schedule[0].used[r], sets[r].now, state%mixes)
	}
	return total
}

// repeat adds to every state what a pass costs that repeats in it, and rules
// out states that cannot be.
func (n *dp25) repeat(value []float64, sets []set, j int, memory float64) {
	var bytes, stay [setLimit][mixes]float64
	dead := n.dead(j)
	for r := range sets {
		for k, m := range allMixes {
			bytes[r][k] = sets[r].memory(m)
			stay[r][k] = float64(n.schedule[j].times-1) * sets[r].cost(n.schedule[j].used[r], k, k)
			if m.packed > 0 && !sets[r].packs || m != (mix{}) && dead[r] {
				bytes[r][k] = math.Inf(1)
			}
		}
	}
	for state := range value {
		need := 0.0
		for r, left := 0, state; r < len(sets); r, left = r+1, left/mixes {
			need += bytes[r][left%mixes]
			value[state] += stay[r][left%mixes]
		}
		if need > memory {
			value[state] = math.Inf(1)
		}
	}
}

// dead says of each set that no pass from j on uses it.
func (n *dp25) dead(j int) []bool {
	dead := make([]bool, len(n.sets))
	for r := range dead {
		dead[r] = !slices.ContainsFunc(n.schedule[j:], func(s pass) bool { return s.used[r] > 0 })
	}
	return dead
}

// relax takes the minimum over the next mix of one set.
func relax(value []float64, each int, s *set, used float64) {
	var table [mixes][mixes]float64
	for u := range mixes {
		for v := range mixes {
			table[u][v] = s.cost(used, u, v)
		}
	}
	var next [mixes]float64
	for base := range value {
		if base/each%mixes != 0 {
			continue
		}
		for u := range mixes {
			next[u] = math.Inf(1)
		}
		for v := range mixes {
			then := value[base+v*each]
			for u := 0; u < mixes && !math.IsInf(then, 1); u++ {
				next[u] = min(next[u], table[u][v]+then)
			}
		}
		for u := range mixes {
			value[base+u*each] = next[u]
		}
	}
}

// fill gives the items of a set the levels of a mix.
func (n *dp25) fill(s *set, m mix) {
	ram := len(s.items) * m.ram / quarters
	packed := len(s.items)*(m.ram+m.packed)/quarters - ram
	for k, i := range s.items {
		switch {
		case k < ram:
			n.raise(i, RAM)
		case k < ram+packed:
			n.raise(i, Packed)
		}
	}
}

func (n *dp25) raise(item int32, at Level) {
	if b := n.draft.bundle(int(item)); at > b.level {
		n.draft.put(b, at)
	}
}

// whole keeps a set as it is if all of it fits.
func (n *dp25) whole(s *set) {
	left := float64(n.draft.left.mem)
	for _, at := range []Level{RAM, Packed} {
		if s.bytes[at] > left || at == Packed && !s.packs {
			continue
		}
		for _, i := range s.items {
			n.raise(i, at)
		}
		return
	}
}
