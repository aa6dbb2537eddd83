package system_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"rankfs/test/eventually"
)

// A pacedJob opens its batches in their order, one each tick.
type pacedJob struct {
	name  string
	tick  time.Duration
	rank  *rank
	opens int
}

// next is when it opens the next one, after the beginning.
func (j *pacedJob) next() time.Duration { return time.Duration(j.opens) * j.tick }

// misses is how often the batch is not in memory, with so many places, if what goes
// is what is used last of all, or what was used longest ago.
func misses(uses []string, places int, foreseen bool) (n int) {
	worth := make([]int, len(uses)) // of keeping what is used: the least goes
	last := map[string]int{}
	for i := range uses {
		worth[i] = i
	}
	if foreseen {
		for i := len(uses) - 1; i >= 0; i-- {
			worth[i] = -len(uses)
			if next, again := last[uses[i]]; again {
				worth[i] = -next
			}
			last[uses[i]] = i
		}
	}
	kept := map[string]int{}
	for i, batch := range uses {
		if _, there := kept[batch]; !there {
			n++
		}
		if kept[batch] = worth[i]; len(kept) > places {
			least := slices.MinFunc(slices.Collect(maps.Keys(kept)), func(a, b string) int { return kept[a] - kept[b] })
			delete(kept, least)
		}
	}
	return n
}

var quiet = flag.Bool("jobs", false, "hold several jobs to the best of all policies, and ten as well as two; the machine must do nothing else")

// Jobs of different paces find nearly as much in memory as with the best of all
// policies, which knows the future, and more than with the least recently used one
// out. The cache goes by paces, which a busy machine changes: there half of that is enough,
// and what is kept is right.
func TestHitsOfSeveralJobs(t *testing.T) {
	if !*quiet {
		t.Parallel()
	}
	for _, jobs := range []struct {
		ticks         []time.Duration // in ms
		size, batches int             // of a batch; of each job
		quiet         bool
	}{
		{[]time.Duration{4, 16}, 64 << 10, 200, false},
		{[]time.Duration{5, 6, 7, 8, 9, 11, 13, 15, 18, 21}, 16 << 10, 240, true},
	} {
		if *quiet || !jobs.quiet {
			t.Run(fmt.Sprint(len(jobs.ticks)), func(t *testing.T) { hitsOf(t, jobs.ticks, jobs.size, jobs.batches) })
		}
	}
}

func hitsOf(t *testing.T, ticks []time.Duration, size, batches int) {
	n := start(t, "--ram", "16MiB")
	places := 16 << 20 / size
	var jobs []*pacedJob
	has := make(map[string]string) // the bytes of each batch
	for i, tick := range ticks {
		name, s := fmt.Sprint("job", i), newFixed(t, batches, size)
		n.create(name, s, "--batch", "1")
		for k := range batches {
			has[n.batch(name, 0, k)] = sumOf(s.all(k, k+1))
		}
		jobs = append(jobs, &pacedJob{name: name, tick: tick * time.Millisecond, rank: newRank(t)})
	}
	// One open after the other: a machine that is busy slows all jobs alike, and the
	// sequence of their opens stays what it is.
	var uses []string
	span := 3 * time.Second
	if *quiet {
		span = 8 * time.Second
	}
	for now := time.Duration(0); now < span; {
		j := slices.MinFunc(jobs, func(a, b *pacedJob) int { return cmp.Compare(a.next(), b.next()) })
		time.Sleep(j.next() - now)
		now = j.next()
		batch := n.batch(j.name, 0, j.opens%batches)
		if j.rank.batch(batch) != has[batch] {
			t.Errorf("%s has other bytes", batch)
		}
		uses = append(uses, batch)
		j.opens++
	}
	fills, once := int(n.status().Counters.Fills), misses(uses, len(has), true)
	best, lru := misses(uses, places, true), misses(uses, places, false)
	share := float64(len(uses)-fills) / float64(len(uses)-best)
	t.Logf("%d opens: %d fills, at best %d, lru %d: %.3f of the optimum", len(uses), fills, best, lru, share)
	if fills < once {
		t.Errorf("%d fills, and %d batches were opened", fills, once)
	}
	if share < 0.5 {
		t.Errorf("%d fills for %d opens, with the best policy %d", fills, len(uses), best)
	}
	if *quiet && share < 0.97 {
		t.Errorf("%d of %d opens found their batch in memory, with the best policy %d", len(uses)-fills, len(uses), len(uses)-best)
	}
	if *quiet && fills > lru {
		t.Errorf("%d fills, the least recently used one out has %d", fills, lru)
	}
}

// An epoch that memory has room for is filled once, however many jobs read it: two of
// different paces, and then one of them again. That no other epoch has its batches is no
// reason to give them up.
func TestJobsOnOneEpoch(t *testing.T) {
	const batches, size = 200, 64 << 10
	n := start(t, "--ram", "64MiB")
	n.create("d", newFixed(t, batches, size), "--batch", "1")
	jobs := []*pacedJob{{tick: 1, rank: newRank(t)}, {tick: 3, rank: newRank(t)}}
	for _, order := range []string{"full", "window:50"} {
		before := n.status().Counters.Fills
		for _, j := range jobs {
			j.opens = 0
		}
		read := func(j *pacedJob) {
			j.rank.batch(n.batch("d@order="+order, 0, j.opens))
			j.opens++
		}
		for jobs[1].opens < batches {
			j := slices.MinFunc(jobs, func(a, b *pacedJob) int {
				return cmp.Or(cmp.Compare(a.opens/batches, b.opens/batches), cmp.Compare(a.next(), b.next()))
			})
			read(j)
		}
		for jobs[0].opens = 0; jobs[0].opens < batches; {
			read(jobs[0])
		}
		// Some batches of the next epoch are made ready meanwhile.
		if fills := n.status().Counters.Fills - before; fills > batches*5/4 {
			t.Errorf("order=%s: %d fills for %d batches, which were read three times", order, fills, batches)
		}
	}
}

// A job that has ended keeps no part of memory once it has been silent for as long as it worked:
// the next one has all of it, and fills nothing again in its second epoch.
func TestTheNextJobHasAllOfMemory(t *testing.T) {
	t.Parallel()
	const size, places = 64 << 10, 256
	n := start(t, "--ram", fmt.Sprintf("%dMiB", places*size>>20))
	ended, next := newFixed(t, places/2, size), newFixed(t, places*15/16, size)
	n.create("ended", ended, "--batch", "1")
	n.create("next", next, "--batch", "1")
	read := func(r *rank, view string, s source) (fills int) {
		before := n.status().Counters.Fills
		for k := range s.records {
			if r.batch(n.batch(view, 0, k)) != sumOf(s.records[k]) {
				t.Errorf("%s: batch %d has other bytes", view, k)
			}
		}
		return n.status().Counters.Fills - before
	}
	first, begun := newRank(t), time.Now()
	if fills := read(first, "ended", ended); fills < len(ended.records) {
		t.Errorf("%d fills for %d batches that were never read", fills, len(ended.records))
	}
	first.end()
	end := time.Now()
	eventually.True(t, "it has been silent for longer than it worked, and than a job's first steps may take", func() bool {
		return time.Since(end) > max(end.Sub(begun), 200*time.Millisecond)
	})
	r := newRank(t)
	once := read(r, "next", next)
	again := read(r, "next@epoch=1", next)
	t.Logf("%d fills, and %d in the second epoch", once, again)
	if again > len(next.records)/10 {
		t.Errorf("%d fills in the second epoch, of %d batches for which memory has room", again, len(next.records))
	}
}
