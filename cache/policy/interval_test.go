package policy_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/policy"
)

// slabs draws problems with equal slabs and one level, whose items save the
// same or each something else.
func slabs(t *rapid.T, alike bool) *policy.Problem {
	n := rapid.IntRange(1, 5).Draw(t, "items")
	p := &policy.Problem{Memory: slab * rapid.Int64Range(0, 3).Draw(t, "slabs")}
	room := p.Memory / slab
	for range n {
		wait := 1.0
		if !alike {
			wait = float64(rapid.IntRange(1, 9).Draw(t, "wait"))
		}
		it := policy.Item{
			Bytes: [policy.Levels]int64{0, -1, -1, slab},
			Wait:  [policy.Levels]float64{wait, wait, wait, 0},
			Group: -1, Job: -1, Last: -1,
		}
		if room > 0 && rapid.Bool().Draw(t, "here") {
			it.Now = policy.RAM
			room--
		}
		p.Items = append(p.Items, it)
	}
	for k := range rapid.IntRange(0, 12).Draw(t, "uses") {
		p.Uses = append(p.Uses, policy.Use{Item: int32(rapid.IntRange(0, n-1).Draw(t, "use")), At: float64(k + 1)})
	}
	return p
}

// most is what can be saved at best, by trying every set that may be kept
// after every use: a bit for each item.
func most(p *policy.Problem) float64 {
	at := uint(0)
	for i := range p.Items {
		if p.Items[i].Now == policy.RAM {
			at |= 1 << i
		}
	}
	best := map[uint]float64{}
	keep(p, best, at, 0)
	for _, u := range p.Uses {
		next := map[uint]float64{}
		for set, saved := range best {
			if set>>u.Item&1 == 1 {
				saved += p.Items[u.Item].Wait[policy.Source]
			}
			keep(p, next, set|1<<u.Item, saved)
		}
		best = next
	}
	most := 0.0
	for _, saved := range best {
		most = math.Max(most, saved)
	}
	return most
}

// keep enters all subsets that fit.
func keep(p *policy.Problem, best map[uint]float64, set uint, saved float64) {
	for sub := set; ; sub = (sub - 1) & set {
		n := int64(0)
		for left := sub; left > 0; left &= left - 1 {
			n++
		}
		if n*slab <= p.Memory {
			best[sub] = math.Max(best[sub], saved)
		}
		if sub == 0 {
			return
		}
	}
}

// follow counts what a cache saves that chooses before every use.
func follow(t rapid.TB, p *policy.Problem) (saved float64) {
	by := newPolicy(t, "interval")
	levels := make([]policy.Level, len(p.Items))
	for len(p.Uses) > 0 {
		by.Choose(p, levels)
		for i := range levels {
			p.Items[i].Now = min(p.Items[i].Now, levels[i])
		}
		u := p.Uses[0]
		p.Uses, p.Now = p.Uses[1:], u.At
		it := &p.Items[u.Item]
		if it.Now == policy.RAM {
			saved += it.Wait[policy.Source]
		}
		// Until the next choice it is here, whether there is room or not.
		it.Now = policy.RAM
	}
	return saved
}

// With one level and equal slabs the interval policy is exact: followed use by
// use it saves what can be saved at best.
func TestIntervalIsExact(t *testing.T) {
	for name, alike := range map[string]bool{"all save the same": true, "each saves something else": false} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			p := slabs(t, alike)
			best := most(p)
			if got := follow(t, p); math.Abs(got-best) > 1e-9 {
				t.Fatalf("saved %g of %g", got, best)
			}
		}))
	}
}

// Its worth leads as far as its choice: one choice, and then evictions by worth,
// save as much. Where items save different amounts prices may tie, and what
// ties may go wrong: 0.1 % over all that is drawn.
func TestIntervalWorth(t *testing.T) {
	for name, alike := range map[string]bool{"all save the same": true, "each saves something else": false} {
		t.Run(name, func(t *testing.T) {
			got, best := 0.0, 0.0
			rapid.Check(t, func(t *rapid.T) {
				p := slabs(t, alike)
				p.Memory = max(p.Memory, slab)
				best += most(p)
				by, levels := newPolicy(t, "interval"), make([]policy.Level, len(p.Items))
				by.Choose(p, levels)
				for i := range levels {
					p.Items[i].Now = min(p.Items[i].Now, levels[i])
				}
				got += evict(p, by)
			})
			if alike && got != best || got < 0.99*best {
				t.Errorf("saved %g of %g", got, best)
			}
		})
	}
}

// evict replays a problem with nothing but worth.
func evict(p *policy.Problem, by policy.Policy) (saved float64) {
	next := func(item, after int) float64 {
		at := slices.IndexFunc(p.Uses[after:], func(u policy.Use) bool { return int(u.Item) == item })
		if at < 0 {
			return math.Inf(1)
		}
		return p.Uses[after+at].At
	}
	for k, u := range p.Uses {
		it := &p.Items[u.Item]
		if it.Now == policy.RAM {
			saved += it.Wait[policy.Source]
		}
		it.Now, it.Last = policy.RAM, u.At
		kept, worst, least := int64(0), -1, math.Inf(1)
		for i := range p.Items {
			if p.Items[i].Now != policy.RAM {
				continue
			}
			kept++
			if w := by.Worth(&p.Items[i], next(i, k+1)); w < least {
				worst, least = i, w
			}
		}
		if kept*slab > p.Memory {
			p.Items[worst].Now = policy.Source
		}
	}
	return saved
}
