package policy_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rankfs/cache/policy"
	"rankfs/test/belady"
)

// epochs is a string of accesses: each epoch all items once, in order, in an
// order shuffled within windows, or in any.
func epochs(order string, n, times int) []int32 {
	rng := rand.New(rand.NewPCG(7, 7))
	var out []int32
	for range times {
		epoch := make([]int32, n)
		for i := range epoch {
			epoch[i] = int32(i)
		}
		window := map[string]int{"none": 1, "window": n / 10, "full": n}[order]
		for at := 0; at < n; at += window {
			part := epoch[at:min(at+window, n)]
			rng.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
		}
		out = append(out, epoch...)
	}
	return out
}

// after gives for each access the next one of the same item, or -1.
func after(accesses []int32, n int) []int {
	next, seen := make([]int, len(accesses)), make([]int, n)
	for i := range seen {
		seen[i] = -1
	}
	for k := len(accesses) - 1; k >= 0; k-- {
		next[k] = seen[accesses[k]]
		seen[accesses[k]] = k
	}
	return next
}

// A replay is a cache with nothing but a policy: every so many uses it chooses
// and drops what the choice does not keep; a use brings an item, which stays if it
// is worth more than the least of what is kept.
type replay struct {
	by       policy.Policy
	problem  policy.Problem
	accesses []int32
	horizon  int // uses that are known
	every    int // uses between choices
	kept     worths
	levels   []policy.Level
}

type worth struct {
	item  int32
	value float64
}

type worths []worth

func (w worths) Len() int           { return len(w) }
func (w worths) Less(a, b int) bool { return w[a].value < w[b].value }
func (w worths) Swap(a, b int)      { w[a], w[b] = w[b], w[a] }
func (w *worths) Push(x any)        { *w = append(*w, x.(worth)) }
func (w *worths) Pop() any {
	old := *w
	x := old[len(old)-1]
	*w = old[:len(old)-1]
	return x
}

func newReplay(t testing.TB, name string, accesses []int32, n, slabs, horizon, every int) *replay {
	r := &replay{by: newPolicy(t, name), accesses: accesses, horizon: horizon, every: every,
		problem: policy.Problem{Memory: int64(slabs) * slab}, levels: make([]policy.Level, n)}
	for range n {
		r.problem.Items = append(r.problem.Items, policy.Item{
			Bytes: [policy.Levels]int64{0, -1, -1, slab},
			Wait:  [policy.Levels]float64{0.1, 0.1, 0.1, 0},
			Group: -1, Job: -1, Last: -1,
		})
	}
	return r
}

func (r *replay) run() (hits int) {
	next := after(r.accesses, len(r.problem.Items))
	for k, i := range r.accesses {
		if k%r.every == 0 {
			r.choose(k, next)
		}
		if r.use(k, i, next[k]) {
			hits++
		}
	}
	return hits
}

func (r *replay) choose(k int, next []int) {
	r.problem.Now, r.problem.Uses = float64(k), r.problem.Uses[:0]
	for at := k; at < min(k+r.horizon, len(r.accesses)); at++ {
		r.problem.Uses = append(r.problem.Uses, policy.Use{Item: r.accesses[at], At: float64(at)})
	}
	r.by.Choose(&r.problem, r.levels)
	r.kept = slices.DeleteFunc(r.kept, func(w worth) bool {
		i := &r.problem.Items[w.item]
		if r.levels[w.item] < i.Now {
			i.Now = policy.Source
			return true
		}
		return false
	})
	for at := range r.kept {
		i := &r.problem.Items[r.kept[at].item]
		r.kept[at].value = r.by.Worth(i, r.known(k, next[int(i.Last)]))
	}
	heap.Init(&r.kept)
}

// known is the time of a use, if it is within the horizon.
func (r *replay) known(now, at int) float64 {
	if at < 0 || at >= now+r.horizon {
		return math.Inf(1)
	}
	return float64(at)
}

func (r *replay) use(k int, i int32, next int) (hit bool) {
	it := &r.problem.Items[i]
	it.Last = float64(k)
	if at := slices.IndexFunc(r.kept, func(w worth) bool { return w.item == i }); at >= 0 {
		hit = true
		heap.Remove(&r.kept, at)
	}
	it.Now = policy.RAM
	heap.Push(&r.kept, worth{i, r.by.Worth(it, r.known(k, next))})
	if int64(len(r.kept))*slab > r.problem.Memory {
		gone := heap.Pop(&r.kept).(worth)
		r.problem.Items[gone.item].Now = policy.Source
	}
	return hit
}

// A scan and five epochs of any order are served as well as can be if the
// future is known.
func TestReplay(t *testing.T) {
	const n = 500
	for _, order := range []string{"none", "window", "full"} {
		accesses := epochs(order, n, 6)
		for _, percent := range []int{10, 25, 50, 90} {
			t.Run(fmt.Sprintf("%s/%d%%", order, percent), func(t *testing.T) {
				slabs := n * percent / 100
				best := float64(belady.Hits(accesses, slabs))
				ratio := func(name string, horizon, every int) float64 {
					return float64(newReplay(t, name, accesses, n, slabs, horizon, every).run()) / best
				}
				for _, name := range []string{"mckp", "interval"} {
					all, seldom, short := ratio(name, 6*n, 25), ratio(name, 6*n, n), ratio(name, n, 25)
					t.Logf("%s: %.4f of the optimum; %.4f planning once an epoch; %.4f knowing an epoch", name, all, seldom, short)
					if all < 0.99 || seldom < 0.99 {
						t.Errorf("%s: %.4f and %.4f of the hits that are possible", name, all, seldom)
					}
				}
				t.Logf("lru %.4f, mrd %.4f, dp25 %.4f; optimum: %.4f of all uses", ratio("lru", 6*n, 25),
					ratio("mrd", 6*n, 25), ratio("dp25", 6*n, 25), best/float64(len(accesses)))
			})
		}
	}
}
