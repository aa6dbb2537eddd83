package cache_test

import (
	"container/heap"
	"container/list"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/policy"
)

var hour = flag.Duration("hour", 40*time.Second, "of the virtual clock, in which several jobs read")

// A paced job opens the batches of a series in order, over and over, or once, one a tick
// where it need not wait, give or take a part of it.
type paced struct {
	series *testSeries
	tick   time.Duration
	rests  time.Duration // so many ticks after some steps, as one does that writes a checkpoint
	once   bool
	way    way // nil: in order
}

// An opening is a batch that was opened, and when.
type opening struct {
	at  time.Time
	key cache.Key
}

// read has jobs read for a time, and says in order what they opened.
func read(t *testing.T, k *cache.Cache, jobs []paced, d time.Duration) (all []opening) {
	var mu sync.Mutex
	var tasks sync.WaitGroup
	start := time.Now()
	for n, j := range jobs {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		tasks.Go(func() {
			begin := start
			for i := uint64(0); !j.once || i < j.series.steps; i++ {
				late := time.Duration(r.Int64N(int64(j.tick) / 4))
				if i < 10 && n%2 == 0 { // its first steps take longer
					begin = begin.Add(j.tick * 6 / 25)
				}
				if i%97 == 50 {
					begin = begin.Add(j.tick * j.rests)
				}
				time.Sleep(time.Until(begin.Add(time.Duration(i+1)*j.tick + late)))
				if time.Since(start) > d || t.Failed() {
					return
				}
				step := i % j.series.steps
				if j.way != nil {
					step = j.way(i, j.series.steps)
				}
				now := time.Now()
				s, err := k.Open(t.Context(), nil, as(j.series), 0, step, j.series.Key(0, step))
				if err != nil {
					t.Error(err)
					return
				}
				s.Release()
				mu.Lock()
				all = append(all, opening{now, j.series.Key(0, step)})
				mu.Unlock()
			}
		})
	}
	tasks.Wait()
	slices.SortStableFunc(all, func(a, b opening) int { return a.at.Compare(b.at) })
	return all
}

// bestOf is how many hits there are at most with so many places: what is used
// last of all goes first, and at once if that is what was just read.
func bestOf(all []opening, places int) (hits int) {
	next, last := make([]int, len(all)), map[cache.Key]int{}
	for i := len(all) - 1; i >= 0; i-- {
		next[i] = len(all)
		if n, ok := last[all[i].key]; ok {
			next[i] = n
		}
		last[all[i].key] = i
	}
	kept, soonest := latest{}, map[cache.Key]int{}
	for i, o := range all {
		if _, there := soonest[o.key]; there {
			hits++
			delete(soonest, o.key)
		}
		if next[i] == len(all) {
			continue
		}
		soonest[o.key] = next[i]
		heap.Push(&kept, use{next[i], o.key})
		for len(soonest) > places {
			if u := heap.Pop(&kept).(use); soonest[u.key] == u.at {
				delete(soonest, u.key)
			}
		}
	}
	return hits
}

// lruOf is how many fills there are with so many places if what was used longest ago goes.
func lruOf(all []opening, places int) (fills int) {
	order, at := list.New(), map[cache.Key]*list.Element{}
	for _, o := range all {
		if e := at[o.key]; e != nil {
			order.MoveToBack(e)
			continue
		}
		fills++
		at[o.key] = order.PushBack(o.key)
		if order.Len() > places {
			delete(at, order.Remove(order.Front()).(cache.Key))
		}
	}
	return fills
}

type use struct {
	at  int
	key cache.Key
}

// latest is a heap, the last use on top.
type latest []use

func (l latest) Len() int           { return len(l) }
func (l latest) Less(i, j int) bool { return l[i].at > l[j].at }
func (l latest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *latest) Push(x any)        { *l = append(*l, x.(use)) }
func (l *latest) Pop() any {
	old := *l
	u := old[len(old)-1]
	*l = old[:len(old)-1]
	return u
}

// Several jobs of different paces find as much in memory as the best of all
// policies would, and never less than the one used last would keep; also if one rests now and
// then for longer than it reads.
func TestHitsOfSeveralJobs(t *testing.T) {
	const batch = 32 << 10
	ticks := func(all ...time.Duration) []time.Duration { return all }
	ten := ticks(20, 23, 29, 31, 37, 43, 53, 61, 71, 83)
	type row struct {
		ticks   []time.Duration // in ms
		places  int
		percent int // of what they read
		rests   time.Duration
	}
	rows := []row{
		{ticks(4, 16), 512, 64, 0},
		{ticks(16, 4), 512, 10, 0}, {ticks(4, 16), 512, 30, 0}, {ticks(5, 7), 512, 50, 0}, {ticks(4, 16), 512, 90, 0},
		{ten, 1024, 20, 0}, {ten, 1024, 40, 0}, {ten, 1024, 90, 0},
		{ticks(4, 16), 512, 64, 300}, {ticks(5, 7), 512, 50, 300},
	}
	if *hour >= 3*time.Minute { // before that half of the jobs are in their first epoch
		rows = append(rows, row{ten, 1024, 10, 0}, row{ten, 1024, 40, 300})
	}
	for _, test := range rows {
		t.Run(fmt.Sprintf("%d jobs, %d%%, rests %d", len(test.ticks), test.percent, test.rests), func(t *testing.T) {
			run := func(policy string) (all []opening, fills int) {
				synctest.Test(t, func(t *testing.T) {
					var jobs []paced
					steps := test.places * 100 / test.percent / len(test.ticks)
					for i, tick := range test.ticks {
						p := &testSeries{id: byte(i + 1), steps: uint64(steps), size: batch, noise: true, fail: slow(2 * time.Millisecond)}
						jobs = append(jobs, paced{series: p, tick: tick * time.Millisecond})
					}
					jobs[0].rests = test.rests
					k := newCache(t, cache.Config{RAMBytes: int64(test.places) * batch, Workers: 2, Policy: policy})
					all = read(t, k, jobs, *hour)
					awaitQuiet(k)
					fills = int(k.Stats().Fills)
				})
				return all, fills
			}
			all, fills := run("")
			hits, best, lru := len(all)-fills, bestOf(all, test.places), lruOf(all, test.places)
			t.Logf("%d opens, %d fills (lru %d): %d hits, the best is %d: %.4f", len(all), fills, lru, hits, best, float64(hits)/float64(best))
			if float64(hits) < 0.97*float64(best) {
				t.Errorf("%d of %d opens found their batch in memory, the best of all policies %d", hits, len(all), best)
			}
			if fills > lru {
				t.Errorf("%d fills for %d opens, lru has %d", fills, len(all), lru)
			}
		})
	}
}

// What mckp is compared with knows no jobs: the batch used longest ago goes, of whichever
// job, also of one that waits.
func TestLRUKnowsNoJobs(t *testing.T) {
	const batch, places = 32 << 10, 512
	for _, test := range []struct {
		ticks   []time.Duration
		percent int
	}{{[]time.Duration{4, 16}, 64}, {[]time.Duration{20, 23, 29, 31, 37, 43, 53, 61, 71, 83}, 90}} {
		t.Run(fmt.Sprintf("%d jobs, %d%%", len(test.ticks), test.percent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var jobs []paced
				steps := places * 100 / test.percent / len(test.ticks)
				for i, tick := range test.ticks {
					p := &testSeries{id: byte(i + 1), steps: uint64(steps), size: batch, noise: true, fail: slow(2 * time.Millisecond)}
					jobs = append(jobs, paced{series: p, tick: tick * time.Millisecond})
				}
				k := newCache(t, cache.Config{RAMBytes: places * batch, Workers: 2, Policy: "lru"})
				all := read(t, k, jobs, 40*time.Second)
				awaitQuiet(k)
				fills, lru := int(k.Stats().Fills), lruOf(all, places)
				t.Logf("%d opens: %d fills, reckoned %d", len(all), fills, lru)
				if off := fills - lru; max(off, -off) > lru/4 { // some are made ready ahead for nothing
					t.Errorf("%d fills for %d opens, with the batch used longest ago out %d", fills, len(all), lru)
				}
			})
		})
	}
}

// Jobs of different paces that read one view find as much of it as the best of all
// policies would, too: over and over, or an epoch that no other has the batches of. What
// one has read is not spent while another comes to it.
func TestHitsOfJobsOnOneView(t *testing.T) {
	for _, once := range []bool{true, false} {
		for _, ticks := range [][]time.Duration{{4, 16}, {7, 5}, {5, 8, 13}} {
			for _, percent := range []int{10, 30, 50, 90, 100} {
				t.Run(fmt.Sprintf("once=%v, %d jobs, %d%%", once, len(ticks), percent), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testHitsOnOneView(t, ticks, percent, once) })
				})
			}
		}
	}
}

func testHitsOnOneView(t *testing.T, ticks []time.Duration, percent int, once bool) {
	const batch, places = 32 << 10, 512
	p := &testSeries{id: 1, steps: uint64(places * 100 / percent), size: batch, noise: true, once: once, last: once, fail: slow(2 * time.Millisecond)}
	var jobs []paced
	for _, tick := range ticks {
		jobs = append(jobs, paced{series: p, tick: tick * time.Millisecond, once: once})
	}
	k := newCache(t, cache.Config{RAMBytes: places * batch, Workers: 2})
	all := read(t, k, jobs, map[bool]time.Duration{true: time.Hour, false: *hour}[once])
	hits, best := len(all)-int(k.Stats().Fills), bestOf(all, places)
	t.Logf("%d opens of %d batches: %d hits, the best is %d: %.4f", len(all), p.steps, hits, best, float64(hits)/float64(best))
	if float64(hits) < 0.97*float64(best) {
		t.Errorf("%d of %d opens found their batch in memory, the best of all policies %d", hits, len(all), best)
	}
}

// Jobs that read one view side by side, with no more than a step or two between them, are
// told apart all the same: what one has read is there for the next, and nothing is filled
// more often than under lru, also where there is room for little.
func TestHitsOfJobsSideBySide(t *testing.T) {
	const batch = 1 << 20
	rooms, paces := []int{16, 64}, [][]time.Duration{{50, 51, 52, 53}, {50}, {50, 50}, {50, 51}, {50, 50, 50, 50}}
	if testing.Short() {
		rooms, paces = rooms[:1], paces[:1]
	}
	for _, ticks := range paces {
		for _, places := range rooms {
			t.Run(fmt.Sprintf("%v, %d places", ticks, places), func(t *testing.T) {
				run := func(policy string) (all []opening, fills int) {
					synctest.Test(t, func(t *testing.T) {
						p := &testSeries{id: 1, steps: uint64(3 * places), size: batch, noise: true, fail: slow(2 * time.Millisecond)}
						var jobs []paced
						for _, tick := range ticks {
							jobs = append(jobs, paced{series: p, tick: tick * time.Millisecond})
						}
						k := newCache(t, cache.Config{RAMBytes: int64(places) * batch, Workers: 2, Policy: policy})
						all = read(t, k, jobs, time.Duration(3*3*places)*55*time.Millisecond)
						awaitQuiet(k)
						fills = int(k.Stats().Fills)
					})
					return all, fills
				}
				all, fills := run("")
				least, lru := len(all)-bestOf(all, places), lruOf(all, places)
				t.Logf("%d opens: %d fills, lru %d, the least is %d", len(all), fills, lru, least)
				if fills > lru || float64(fills) > 1.15*float64(least) {
					t.Errorf("%d fills, lru has %d, the best of all policies %d", fills, lru, least)
				}
			})
		}
	}
}

// An epoch for which memory has room is filled once, however often it is read, also if
// no other epoch has its batches. Where others want memory, what was read goes first.
func TestAnEpochReadAgain(t *testing.T) { synctest.Test(t, testAnEpochReadAgain) }

func testAnEpochReadAgain(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	once := &testSeries{id: 1, steps: 50, size: 1 << 20, once: true, last: true}
	first := readEpoch(t, k, once, time.Second)
	if again := readEpoch(t, k, once, time.Second); first != once.steps || again > 0 {
		t.Errorf("%d fills of %d batches, and %d when they were read again", first, once.steps, again)
	}
	others := &testSeries{id: 2, steps: 60, size: 1 << 20}
	readEpoch(t, k, others, time.Second)
	if fills := readEpoch(t, k, others, time.Second); fills > 0 {
		t.Errorf("%d batches were filled again, beside others that no reader comes to", fills)
	}
}

// A job that has stopped reading for longer than it read has no part of memory any more, whether it
// waited for its batches when it was there or not: another one has all of it. One that pauses
// for less, as for a checkpoint, finds its part when it goes on.
func TestAJobThatRests(t *testing.T) {
	const batch, places = 32 << 10, 512
	for _, test := range []struct {
		name  string
		works time.Duration
		once  bool
		stays bool
	}{
		{"read once", time.Minute, true, false},
		{"read over and over", time.Second, false, false},
		{"pauses", 20 * time.Second, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newSeries := func(id byte, steps uint64) *testSeries {
					return &testSeries{id: id, steps: steps, size: batch, noise: true, fail: slow(2 * time.Millisecond)}
				}
				first, other := newSeries(1, places/2), newSeries(2, places-8)
				k := newCache(t, cache.Config{RAMBytes: places * batch, Workers: 2})
				fills := func(j paced, d time.Duration) int {
					before := k.Stats().Fills
					read(t, k, []paced{j}, d)
					awaitQuiet(k)
					return int(k.Stats().Fills - before)
				}
				fills(paced{series: first, tick: time.Millisecond / 4, once: test.once}, test.works)
				fills(paced{series: other, tick: time.Millisecond}, 10*time.Second)
				if n := fills(paced{series: other, tick: time.Millisecond}, 5*time.Second); !test.stays && n > places/10 {
					t.Errorf("%d fills of another job, for whose batches memory has room", n)
				}
				if n := fills(paced{series: first, tick: time.Millisecond, once: true}, time.Minute); test.stays && n > places/10 {
					t.Errorf("%d fills of a job that has paused, whose batches are its part of memory", n)
				}
			})
		})
	}
}

// A job of which all others rest is as one alone: when memory becomes less its batches go by what they
// are worth, though it waits for what it lacks, and not after all that others have.
func TestAJobOfWhichAllOthersRest(t *testing.T) {
	for _, others := range []int{1, 3} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const batch, places = 64 << 10, 512
				k := newCache(t, cache.Config{RAMBytes: places * batch, Workers: 2})
				rests := func(i int) *testSeries {
					return &testSeries{id: byte(i), steps: places / 8 / uint64(others), size: batch, noise: true}
				}
				for range 10 {
					for i := range others {
						readEpoch(t, k, rests(i), time.Millisecond)
					}
				}
				readAtRandom(t, k, &testSeries{id: 9, steps: places * 3 / 4, size: batch, noise: true, fail: slow(2 * time.Millisecond)})
				k.Allow(places/2*batch, true)
				fills := uint64(0)
				for i := range others {
					fills += readEpoch(t, k, rests(i), time.Millisecond)
				}
				if fills > 0 {
					t.Errorf("%d of %d batches are filled again that are read over and over, and others are there that were read once", fills, places/8)
				}
			})
		})
	}
}

// readAtRandom opens each batch of a series once, and waits for it.
func readAtRandom(t *testing.T, k *cache.Cache, all ...*testSeries) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	for _, step := range r.Perm(int(all[0].steps)) {
		for _, p := range all {
			open(t, k, p, 0, uint64(step)).Release()
			time.Sleep(time.Millisecond)
		}
	}
}

// What is pinned stays when memory becomes less, though jobs wait for what they lack.
func TestPinnedBesideJobsThatWait(t *testing.T) {
	for _, jobs := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(jobs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const batch, places = 64 << 10, 512
				k := newCache(t, cache.Config{RAMBytes: places * batch, Workers: 2})
				pinned := &testSeries{id: 1, steps: places / 8, size: batch, noise: true, last: true}
				k.Pin(pinned.ID(), policy.RAM)
				readEpoch(t, k, pinned, time.Millisecond)
				var all []*testSeries
				for i := range jobs {
					all = append(all, &testSeries{id: byte(2 + i), steps: places, size: batch, noise: true, fail: slow(2 * time.Millisecond)})
				}
				readAtRandom(t, k, all...)
				if n := k.Tenants(); n != jobs {
					t.Fatalf("%d jobs, want %d", n, jobs)
				}
				k.Allow(places/2*batch, true)
				if fills := readEpoch(t, k, pinned, time.Millisecond); fills > 0 {
					t.Errorf("%d of %d pinned batches were gone", fills, pinned.steps)
				}
			})
		})
	}
}

// A job alone has no standing, though it reads one series and then the next: there is no other to
// take anything from it.
func TestAJobAloneHasNoStanding(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	next := &testSeries{id: 2, steps: 20, size: 64 << 10}
	readEpoch(t, k, &testSeries{id: 1, steps: 20, size: 64 << 10, next: next}, time.Millisecond)
	open(t, k, next, 0, 0).Release()
	if n := k.Tenants(); n != 2 {
		t.Fatalf("%d series of a tenant, want 2", n)
	}
	if all := k.Standings(); len(all) > 0 {
		t.Errorf("of one job: %+v", all)
	}
	open(t, k, &testSeries{id: 3, steps: 20, size: 64 << 10}, 0, 0).Release()
	if all := k.Standings(); len(all) != 3 {
		t.Errorf("of two jobs: %+v", all)
	}
}
