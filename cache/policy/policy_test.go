package policy_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/policy"
	"rankfs/meta"
)

const slab = 1 << 20

// problems draws small problems with everything that they can have.
func problems(t *rapid.T) *policy.Problem {
	p := &policy.Problem{
		Now:    rapid.Float64Range(0, 1000).Draw(t, "now"),
		Memory: rapid.Int64Range(0, 4000).Draw(t, "memory"),
		Disk:   rapid.SampledFrom([]int64{0, 500, 3000}).Draw(t, "disk"),
	}
	n := rapid.IntRange(1, 12).Draw(t, "items")
	for range n {
		p.Items = append(p.Items, items(t, p.Now))
	}
	at := p.Now
	for range rapid.IntRange(0, 30).Draw(t, "uses") {
		at += rapid.Float64Range(0, 3).Draw(t, "pause")
		p.Uses = append(p.Uses, policy.Use{Item: int32(rapid.IntRange(0, n-1).Draw(t, "use")), At: at})
	}
	return p
}

func items(t *rapid.T, now float64) policy.Item {
	ram := rapid.Int64Range(1, 1000).Draw(t, "ram")
	packed := rapid.Int64Range(-1, 800).Draw(t, "packed")
	if packed == 0 {
		packed = -1
	}
	wait := rapid.Float64Range(0.1, 10).Draw(t, "wait")
	level := func(name string, odds ...policy.Level) policy.Level { return rapid.SampledFrom(odds).Draw(t, name) }
	i := policy.Item{
		Bytes:  [policy.Levels]int64{0, ram, packed, ram},
		Wait:   [policy.Levels]float64{wait, wait / 3, wait / 8, 0},
		Move:   [policy.Levels]float64{0, wait / 20, wait / 10, 0},
		Now:    level("at", policy.Source, policy.Source, policy.Disk, policy.Packed, policy.RAM),
		Floor:  level("floor", policy.Source, policy.Source, policy.Source, policy.Disk, policy.Packed, policy.RAM),
		Series: rapid.Int32Range(0, 5).Draw(t, "set"),
		Group:  rapid.Int32Range(-4, 3).Draw(t, "group"),
		Job:    rapid.Int32Range(-1, 2).Draw(t, "job"),
		Last:   rapid.Float64Range(-1, 1).Draw(t, "last") * now,
	}
	if i.Now == policy.Packed && packed < 0 {
		i.Now = policy.RAM
	}
	return i
}

func newPolicy(t rapid.TB, name string) policy.Policy {
	by, err := policy.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return by
}

func choose(t rapid.TB, name string, p *policy.Problem) []policy.Level {
	levels := make([]policy.Level, len(p.Items))
	newPolicy(t, name).Choose(p, levels)
	return levels
}

// taken is what levels need of memory and disk.
func taken(p *policy.Problem, levels []policy.Level) (memory, disk int64) {
	for i, l := range levels {
		switch l {
		case policy.Disk:
			disk += p.Items[i].Bytes[l]
		case policy.Packed, policy.RAM:
			memory += p.Items[i].Bytes[l]
		}
	}
	return memory, disk
}

func TestNames(t *testing.T) {
	for _, name := range policy.Names() {
		newPolicy(t, name)
	}
	if _, err := policy.New("best"); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("New(best): %v", err)
	}
}

// Whatever it is asked, a choice keeps to the budgets, puts nothing where it
// cannot be, leaves groups whole, and is the same when asked again.
func TestChoiceKeepsRules(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			p := problems(t)
			levels := choose(t, name, p)
			if memory, disk := taken(p, levels); memory > p.Memory || disk > p.Disk {
				t.Fatalf("%d of %d bytes of memory, %d of %d of disk", memory, p.Memory, disk, p.Disk)
			}
			groups := map[int32]policy.Level{}
			for i, l := range levels {
				if l > policy.Source && p.Items[i].Bytes[l] < 0 {
					t.Fatalf("item %d cannot be at %d", i, l)
				}
				g := p.Items[i].Group
				if other, ok := groups[g]; ok && other != l {
					t.Fatalf("group %d is at %d and %d", g, other, l)
				}
				if g >= 0 {
					groups[g] = l
				}
			}
			if again := choose(t, name, p); !slices.Equal(levels, again) {
				t.Fatalf("%v, then %v", levels, again)
			}
		}))
	}
}

// Pins that fit all are all kept.
func TestPins(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			p := problems(t)
			floors := make([]policy.Level, len(p.Items))
			for i := range p.Items {
				it := &p.Items[i]
				it.Group = -1
				if it.Floor > policy.Source && it.Bytes[it.Floor] < 0 {
					it.Floor = policy.RAM
				}
				floors[i] = it.Floor
			}
			memory, disk := taken(p, floors)
			p.Memory, p.Disk = max(p.Memory, memory), max(p.Disk, disk)
			for i, l := range choose(t, name, p) {
				if l < floors[i] {
					t.Fatalf("item %d, pinned at %d, is at %d", i, floors[i], l)
				}
			}
		}))
	}
}

// The order in which items are given matters only where they are equal.
func TestPermutation(t *testing.T) {
	for _, name := range []string{"mckp", "interval", "lru", "lrc", "mrd"} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			p := problems(t)
			for i := range p.Items {
				differ(&p.Items[i], float64(i+1))
			}
			order := rapid.Permutation(numbers(len(p.Items))).Draw(t, "order")
			was, is := choose(t, name, p), choose(t, name, permuted(p, order))
			for k, i := range order {
				if was[i] != is[k] {
					t.Fatalf("item %d was at %d, is at %d", i, was[i], is[k])
				}
			}
		}))
	}
}

// differ makes an item equal to no other.
func differ(i *policy.Item, by float64) {
	i.Group, i.Last = -1, by
	for l := range policy.Levels {
		i.Wait[l] *= 1 + by/1000
	}
}

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func permuted(p *policy.Problem, order []int) *policy.Problem {
	q := *p
	q.Items, q.Uses = nil, slices.Clone(p.Uses)
	place := make([]int32, len(order))
	for k, i := range order {
		q.Items = append(q.Items, p.Items[i])
		place[i] = int32(k)
	}
	for k := range q.Uses {
		q.Uses[k].Item = place[q.Uses[k].Item]
	}
	return &q
}

// A choice that is carried out is not changed by choosing again, but for
// improvements: it never comes back to what it was before.
func TestNoOscillation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		by := newPolicy(t, "mckp")
		for _, again := range []bool{true, true, true, true, true, false} {
			levels := make([]policy.Level, len(p.Items))
			by.Choose(p, levels)
			same := true
			for i := range p.Items {
				same = same && p.Items[i].Now == levels[i]
				p.Items[i].Now = levels[i]
			}
			if same {
				return
			}
			if !again {
				t.Fatal("five choices of the same problem, and the sixth is another")
			}
		}
	})
}

// brute tries all levels of all items, for problems without pins and jobs.
func brute(p *policy.Problem) (best float64) {
	levels := make([]policy.Level, len(p.Items))
	best = math.Inf(-1)
	for {
		if memory, disk := taken(p, levels); memory <= p.Memory && disk <= p.Disk && possible(p, levels) {
			best = math.Max(best, policy.Gain(p, levels))
		}
		k := 0
		for ; k < len(levels); k++ {
			if levels[k]++; levels[k] < policy.Levels {
				break
			}
			levels[k] = policy.Source
		}
		if k == len(levels) {
			return best
		}
	}
}

func possible(p *policy.Problem, levels []policy.Level) bool {
	for i, l := range levels {
		if l > policy.Source && p.Items[i].Bytes[l] < 0 {
			return false
		}
	}
	return true
}

// The bound is above the best that there is, and the choice is below it by no
// more than the upgrades of two items and what the reluctance to move accounts for.
func TestAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		p.Items = p.Items[:min(len(p.Items), 6)]
		p.Uses = slices.DeleteFunc(p.Uses, func(u policy.Use) bool { return int(u.Item) >= len(p.Items) })
		slack := 1e-9
		largest := 0.0
		for i := range p.Items {
			it := &p.Items[i]
			it.Group, it.Job, it.Floor = -1, -1, policy.Source
			slack += 0.05 * (it.Wait[policy.Source] + it.Move[policy.Packed])
			largest = math.Max(largest, it.Wait[policy.Source]*float64(len(p.Uses)+1))
		}
		best, bound := brute(p), policy.Bound(p)
		if bound < best-1e-9 {
			t.Fatalf("bound %g is below what is possible, %g", bound, best)
		}
		got := policy.Gain(p, choose(t, "mckp", p))
		if got > best+1e-9 || got < best-2*largest-slack {
			t.Fatalf("gain %g, possible %g", got, best)
		}
	})
}
