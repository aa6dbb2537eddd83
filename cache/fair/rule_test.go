package fair_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"rankfs/cache/fair"
)

// A reading is a job that opens a batch of so many in turn or at random, so often in
// a second.
type reading struct {
	want   int
	rate   float64
	random bool
}

// lacks is the share of its opens whose batch is not among so many that it keeps.
func (j reading) lacks(places int) float64 { return max(0, 1-float64(places)/float64(j.want)) }

// waits is how long it waits for them in a second, if there are as many jobs as
// workers and a fill takes a tenth of a second.
func (j reading) waits(places int) float64 {
	busy := j.rate * j.lacks(places) * fill
	if !j.random {
		busy -= 1 // what is ready in time
	}
	return max(0, busy)
}

const fill = 0.1

func (j reading) worth() float64 { return j.rate / float64(j.want) }

// divided calls f with all divisions of places between jobs, none of which has more
// than it wants, unless all have that.
func divided(jobs []reading, places int, f func([]int)) {
	m := make([]int, len(jobs))
	var rec func(j, left int)
	rec = func(j, left int) {
		if j == len(jobs) {
			full := true
			for i := range jobs {
				full = full && m[i] == jobs[i].want
			}
			if left == 0 || full {
				f(m)
			}
			return
		}
		for m[j] = 0; m[j] <= min(left, jobs[j].want); m[j]++ {
			rec(j+1, left-m[j])
		}
		m[j] = 0
	}
	rec(0, places)
}

// A verdict says what a division is worth: how long jobs wait by it, and how much they fill.
type verdict struct{ wait, fills float64 }

func judge(jobs []reading, m []int, places int) (v verdict, fair bool) {
	fair = true
	for i, j := range jobs {
		fair = fair && j.waits(m[i]) <= j.waits(places/len(jobs))+1e-9
		v.wait += j.waits(m[i])
		v.fills += j.rate * j.lacks(m[i])
	}
	return v, fair
}

// standing is how a job stands in a division.
func standing(jobs []reading, m []int, places, i int) fair.Standing {
	return fair.Standing{Held: int64(m[i]), Due: int64(places / len(jobs)), Late: jobs[i].waits(m[i]) > 1e-9}
}

// bring has a job bring one batch more, for which the rule says whose makes way.
func bring(jobs []reading, m []int, places, taker int) {
	if m[taker] == jobs[taker].want {
		return
	}
	used := 0
	for _, n := range m {
		used += n
	}
	if used < places {
		m[taker]++
		return
	}
	mine := standing(jobs, m, places, taker)
	best, priority := -1, fair.Last
	for _, g := range append([]int{taker}, others(len(jobs), taker)...) {
		if m[g] == 0 {
			continue
		}
		its := fair.Usual
		if g != taker {
			its = fair.Of(standing(jobs, m, places, g), mine)
		}
		if best < 0 || its < priority || its == priority && jobs[g].worth() < jobs[best].worth() {
			best, priority = g, its
		}
	}
	switch {
	case best < 0 || best == taker || priority == fair.Last && !mine.Late:
		return
	case priority == fair.Usual && jobs[best].worth() >= jobs[taker].worth():
		return
	}
	m[best]--
	m[taker]++
}

func others(n, but int) (all []int) {
	for i := range n {
		if i != but {
			all = append(all, i)
		}
	}
	return all
}

// From whatever division jobs begin, the rule brings them, with some moves, to one in
// which none waits more than alone, the sum of waiting is the least of all such
// divisions, and if no job waits so is that of fills; but for a place for each job,
// which may go to and fro.
func TestRuleIsTheBestOfAllDivisions(t *testing.T) {
	kinds := []reading{
		{want: 3, rate: 4, random: true}, {want: 6, rate: 6, random: true}, {want: 8, rate: 3, random: true}, {want: 8, rate: 30, random: true},
		{want: 4, rate: 6}, {want: 8, rate: 9}, {want: 6, rate: 13}, {want: 8, rate: 24}, {want: 3, rate: 40},
	}
	cases, starts := 0, 0
	try := func(jobs []reading, places int) {
		cases++
		best, least := verdict{math.Inf(1), math.Inf(1)}, 0.0
		one := verdict{}
		for _, j := range jobs {
			one.wait += 1.25 * j.worth() * fill // what is not clearly more is as good
			one.fills += j.worth()
		}
		divided(jobs, places, func(m []int) {
			if v, fair := judge(jobs, m, places); fair && (v.wait < best.wait-1e-9 || v.wait < best.wait+1e-9 && v.fills < best.fills) {
				best, least = v, v.wait
			}
		})
		divided(jobs, places, func(from []int) {
			starts++
			m := slices.Clone(from)
			for range 20 * places {
				for taker := range jobs {
					bring(jobs, m, places, taker)
				}
			}
			got, _ := judge(jobs, m, places)
			name := fmt.Sprintf("%+v, %d places from %v: %v waits %.3f fills %.2f; best %.3f %.2f", jobs, places, from, m, got.wait, got.fills, best.wait, best.fills)
			for i, j := range jobs {
				if j.waits(m[i]) > j.waits(places/len(jobs))+j.worth()*fill+1e-9 {
					t.Fatalf("job %d waits %.3f, alone %.3f: %s", i, j.waits(m[i]), j.waits(places/len(jobs)), name)
				}
			}
			if got.wait > least+one.wait+1e-9 {
				t.Fatalf("the sum of waiting is not the least: %s", name)
			}
			if least < 1e-9 && got.wait < 1e-9 && got.fills > best.fills+one.fills+1e-9 {
				t.Fatalf("fills are not the least: %s", name)
			}
		})
	}
	for a := range kinds {
		for b := a; b < len(kinds); b++ {
			for _, places := range []int{4, 6, 8, 10} {
				try([]reading{kinds[a], kinds[b]}, places)
			}
			for c := b; c < len(kinds); c++ {
				for _, places := range []int{6, 9, 12} {
					try([]reading{kinds[a], kinds[b], kinds[c]}, places)
				}
			}
		}
	}
	t.Logf("%d cases from %d divisions", cases, starts)
}
