package stall

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A Report is a snapshot of a table.
type Report struct {
	Jobs      []Job // the one that was opened last first
	Others    Totals
	Forgotten int // jobs that are in Others
	Flows     [Causes]Flow
}

// A Job is the account of one job.
type Job struct {
	Name     string
	Of       int64 // when its dataset was registered
	Totals   Totals
	Waiting  int // opens that wait now
	Reading  int // ranks that read now: they wait, or have opened something not longer than Gap ago
	Typical  time.Duration
	Longest  time.Duration // wait but for one in a hundred
	Ranks    []Rank
	Silent   time.Duration // since its last open
	Now      Window        // some 10 s
	Recently Window        // some minute
}

// A Rank is the account of one rank.
type Rank struct {
	Rank    uint64
	Totals  Totals
	Waiting int
}

// A Window is the totals between a moment and now.
type Window struct {
	Width  time.Duration
	Ranks  int // that read
	Totals Totals
}

// Report returns the totals of all jobs, up to now.
func (t *Table) Report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	r := Report{Others: t.mu.others, Forgotten: t.mu.forgotten, Flows: t.flows.Read()}
	for k, j := range t.mu.jobs {
		r.Jobs = append(r.Jobs, j.report(k, now))
	}
	slices.SortFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Silent, b.Silent), cmp.Compare(a.Name, b.Name))
	})
	return r
}

// Without has the jobs that match among the others.
func (r Report) Without(match func(Job) bool) Report {
	all := r.Jobs
	r.Jobs = nil
	for _, j := range all {
		if !match(j) {
			r.Jobs = append(r.Jobs, j)
			continue
		}
		r.Others.add(j.Totals)
		r.Forgotten++
	}
	return r
}

// Reading is the number of ranks that read now, of the jobs that are told apart.
func (r Report) Reading() (ranks int) {
	for _, j := range r.Jobs {
		ranks += j.Reading
	}
	return ranks
}

// All are the totals of all jobs together.
func (r Report) All() Totals {
	all := r.Others
	for _, j := range r.Jobs {
		all.add(j.Totals)
	}
	return all
}

func (j *job) report(k jobKey, now time.Time) Job {
	r := Job{
		Name: k.name, Of: k.of, Totals: j.now(now), Waiting: j.waiting,
		Typical: j.spans.quantile(0.5), Longest: j.spans.quantile(0.99),
		Silent: max(0, now.Sub(j.last)),
	}
	for _, number := range slices.Sorted(maps.Keys(j.ranks)) {
		one := j.ranks[number]
		total, d := one.totals, one.pending(now)
		total.Time, total.Stalled = total.Time+d, total.Stalled+d
		r.Ranks = append(r.Ranks, Rank{number, total, one.waiting})
		if one.reads(now) {
			r.Reading++
		}
	}
	r.Now, r.Recently = j.window(now, 10*time.Second), j.window(now, time.Minute)
	j.sample(now)
	return r
}

// window is the totals since about so long ago. The ranks' time is computed anew,
// because the totals get it only at the next open.
func (j *job) window(now time.Time, width time.Duration) Window {
	from, was := j.samples.near(now.Add(-width))
	w := Window{Width: now.Sub(from), Totals: j.now(now).since(was)}
	w.Totals.Time = 0
	for _, r := range j.ranks {
		if d := r.active(from, now); d > 0 {
			w.Totals.Time += d
			w.Ranks++
		}
	}
	w.Totals.Stalled = min(w.Totals.Stalled, w.Totals.Time)
	return w
}
