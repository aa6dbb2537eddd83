package system_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// A use is that a job opened a batch.
type use struct {
	at    time.Time
	batch string
}

// misses is how often the batch is not in memory, with so many places, if what goes
// is what is used last of all, or what was used longest ago.
func misses(uses []use, places int, foreseen bool) (n int) {
	worth := make([]int, len(uses)) // of keeping what is used: the least goes
	last := map[string]int{}
	for i := range uses {
		worth[i] = i
	}
	if foreseen {
		for i := len(uses) - 1; i >= 0; i-- {
			worth[i] = -len(uses)
			if next, again := last[uses[i].batch]; again {
				worth[i] = -next
			}
			last[uses[i].batch] = i
		}
	}
	kept := map[string]int{}
	for i, u := range uses {
		if _, there := kept[u.batch]; !there {
			n++
		}
		if kept[u.batch] = worth[i]; len(kept) > places {
			least := slices.MinFunc(slices.Collect(maps.Keys(kept)), func(a, b string) int { return kept[a] - kept[b] })
			delete(kept, least)
		}
	}
	return n
}

var crowded = flag.Bool("jobs", false, "let TestHitsOfSeveralJobs have ten jobs, which takes a machine that does nothing else")

// Jobs of different paces find nearly as much in memory as with the best of all
// policies, which knows the future, and more than with the least recently used one out.
func TestHitsOfSeveralJobs(t *testing.T) {
	ticks, size, batches := []time.Duration{4, 16}, 64<<10, 200 // in ms; of a batch; of each job
	if *crowded {
		ticks, size, batches = []time.Duration{5, 6, 7, 8, 9, 11, 13, 15, 18, 21}, 16<<10, 240
	}
	n := start(t, "--ram", "16MiB")
	places := 16 << 20 / size
	var mu sync.Mutex
	var uses []use
	var jobs sync.WaitGroup
	for i, tick := range ticks {
		name := fmt.Sprint("job", i)
		n.create(name, newFixed(t, batches, size), "--batch", "1")
		r := newRank(t)
		jobs.Go(func() {
			next := time.Now()
			for k, end := 0, next.Add(8*time.Second); time.Now().Before(end); k++ {
				next = next.Add(tick * time.Millisecond)
				time.Sleep(time.Until(next))
				path := n.batch(name, 0, k%batches)
				mu.Lock()
				uses = append(uses, use{time.Now(), path})
				mu.Unlock()
				r.batch(path)
			}
		})
	}
	jobs.Wait()
	fills := int(n.status().Counters.Fills)
	slices.SortStableFunc(uses, func(a, b use) int { return a.at.Compare(b.at) })
	best, lru := misses(uses, places, true), misses(uses, places, false)
	share := float64(len(uses)-fills) / float64(len(uses)-best)
	t.Logf("%d opens: %d fills, at best %d, lru %d: %.3f of the optimum", len(uses), fills, best, lru, share)
	if share < 0.95 {
		t.Errorf("%d of %d opens found their batch in memory, with the best policy %d", len(uses)-fills, len(uses), len(uses)-best)
	}
	if fills > lru {
		t.Errorf("%d fills, the least recently used one out has %d", fills, lru)
	}
}
