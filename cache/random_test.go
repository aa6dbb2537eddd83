package cache_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// A way is how a job goes through a series: which of so many steps it opens as its i-th.
type way func(i, steps uint64) uint64

func inOrder(uint64) way   { return func(i, steps uint64) uint64 { return i % steps } }
func backwards(uint64) way { return func(i, steps uint64) uint64 { return steps - 1 - i%steps } }
func byThrees(uint64) way  { return func(i, steps uint64) uint64 { return 3 * i % steps } }

func atRandom(seed uint64) way {
	r := rand.New(rand.NewPCG(11, seed))
	return func(_, steps uint64) uint64 { return r.Uint64N(steps) }
}

// permuted has all steps in another order each time.
func permuted(seed uint64) way {
	r := rand.New(rand.NewPCG(13, seed))
	var order []int
	return func(i, steps uint64) uint64 {
		if i%steps == 0 {
			order = r.Perm(int(steps))
		}
		return uint64(order[i%steps])
	}
}

// A goer is a job that goes through a series in some way.
type goer struct {
	series byte
	way    func(seed uint64) way
}

// Nothing is made ready, and nothing stays, for readers that seem to be in order by chance,
// as of those at random some always do: there are no more fills than under lru, nor than
// opens, also beside a job in order.
func TestFillsOfJobsAtRandom(t *testing.T) {
	for _, test := range []struct {
		name    string
		jobs    []goer
		ordered bool // one of them is in order
	}{
		{"random", []goer{{1, atRandom}}, false},
		{"permuted", []goer{{1, permuted}}, false},
		{"two at random on one view", []goer{{1, atRandom}, {1, atRandom}}, false},
		{"two permuted", []goer{{1, permuted}, {2, permuted}}, false},
		{"by threes and backwards", []goer{{1, byThrees}, {1, backwards}}, false},
		{"random beside one in order", []goer{{1, atRandom}, {2, inOrder}}, true},
		{"random beside one in order on one view", []goer{{1, atRandom}, {1, inOrder}}, true},
	} {
		for _, percent := range []int{20, 50, 80} {
			t.Run(fmt.Sprintf("%s, %d%%", test.name, percent), func(t *testing.T) {
				opens, fills, ahead, lru := goThrough(t, percent, test.jobs)
				t.Logf("%d opens: %d fills, %d ahead, lru %d", opens, fills, ahead, lru)
				// What is opened at random is found as often whatever is kept: by chance
				// now more often, now less.
				if chance := 2 * math.Sqrt(float64(lru)); float64(fills) > 1.03*float64(lru)+chance || fills > opens {
					t.Errorf("%d fills for %d opens, lru has %d", fills, opens, lru)
				}
				if !test.ordered && ahead > opens/20 {
					t.Errorf("%d of %d batches were made ready for readers at random", ahead, opens)
				}
			})
		}
	}
}

// goThrough has jobs read what memory has room for a part of.
func goThrough(t *testing.T, percent int, jobs []goer) (opens, fills, ahead, lru int) {
	const batch, steps = 1 << 20, 100
	synctest.Test(t, func(t *testing.T) {
		of := map[byte]*testSeries{}
		var all []paced
		for i, j := range jobs {
			if of[j.series] == nil {
				of[j.series] = &testSeries{id: j.series, steps: steps, size: batch, noise: true, fail: slow(2 * time.Millisecond)}
			}
			all = append(all, paced{series: of[j.series], tick: 10 * time.Millisecond, way: j.way(uint64(i))})
		}
		places := len(of) * steps * percent / 100
		k := newCache(t, cache.Config{RAMBytes: int64(places) * batch, Workers: 2})
		opened := read(t, k, all, 6*time.Second)
		awaitQuiet(k)
		opens, lru = len(opened), lruOf(opened, places)
		fills, ahead = int(k.Stats().Fills), int(k.Stats().Prefetched)
	})
	return opens, fills, ahead, lru
}
