package stall_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// ready opens a batch that is ready.
func ready(a *stall.Table, job string, rank uint64) {
	o := a.Open(job, rank)
	o.Done(1000, nil)
}

// waiting opens a batch that has to be waited for.
func waiting(a *stall.Table, k *ticker, job string, rank uint64, c stall.Cause, ms time.Duration) {
	o := a.Open(job, rank)
	end := o.For(c)
	k.pass(ms)
	o.End(end)
	o.Done(1000, nil)
}

func only(t testing.TB, a *stall.Table) stall.Job {
	t.Helper()
	r := a.Report()
	if len(r.Jobs) != 1 {
		t.Fatalf("%d jobs, want one", len(r.Jobs))
	}
	return r.Jobs[0]
}

// A rank's time goes from its first open to its last, without a long gap.
func TestShareOfTheRanksTime(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	ready(a, "train", 0)
	k.pass(60)
	waiting(a, k, "train", 0, stall.Source, 30)
	k.pass(10)
	ready(a, "train", 0)
	k.at = k.at.Add(stall.Gap + 1)
	ready(a, "train", 0)
	k.pass(200) // no rank opens a batch after this
	j := only(t, a)
	want := stall.Totals{
		OpenCounts: meta.OpenCounts{Opens: 4, Ready: 3, Waited: 1, Bytes: 4000},
		Wait:       stall.ByCause{stall.Source: 30e6}, Time: 100e6, Stalled: 30e6,
	}
	if j.Totals != want {
		t.Errorf("got %+v, want %+v", j.Totals, want)
	}
	if s := j.Totals.Share(); s != 0.3 {
		t.Errorf("a share of %v, want 0.3", s)
	}
	if len(j.Ranks) != 1 || j.Ranks[0].Totals != want {
		t.Errorf("ranks: %+v", j.Ranks)
	}
	if j.Typical < 24e6 || j.Typical > 36e6 || j.Longest != j.Typical {
		t.Errorf("waits of %v and %v, want some 30 ms", j.Typical, j.Longest)
	}
}

// A rank that waits now is seen before the wait is over.
func TestWaitUnderWay(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	ready(a, "train", 0)
	k.pass(1000)
	c := a.Clock(stall.Admission)
	o := a.Open("train", 0)
	w := c.Wait(k.now())
	o.Wait(w)
	k.pass(2000)
	c.Enter(stall.Peer)
	k.pass(5000)
	j := only(t, a)
	if want := (stall.ByCause{stall.Admission: 2e9, stall.Peer: 5e9}); j.Totals.Wait != want || j.Waiting != 1 {
		t.Errorf("%d wait for %v, want 1 for %v", j.Waiting, j.Totals.Wait, want)
	}
	if j.Totals.Time != 8e9 || j.Totals.Stalled != 7e9 || j.Totals.Opens != 1 {
		t.Errorf("got %+v, want 7 of 8 s stalled", j.Totals)
	}
	before := j.Totals
	o.Resume(w.ByCause())
	o.Done(0, errors.New("in vain"))
	j = only(t, a)
	before.Opens, before.Waited, before.Errors = 2, 1, 1
	if j.Totals != before || j.Waiting != 0 {
		t.Errorf("after the end %+v, want %+v", j.Totals, before)
	}
}

// An open that its reader gave up is no error, and is counted apart.
func TestInterruptedOpens(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	for _, err := range []error{fmt.Errorf("dataset d: open batch: %w", context.Canceled), context.DeadlineExceeded, nil} {
		o := a.Open("train", 0)
		end := o.For(stall.Source)
		k.pass(10)
		o.End(end)
		o.Done(0, err)
	}
	got := only(t, a).Totals
	if got.Opens != 3 || got.Waited != 3 || got.Interrupted != 1 || got.Errors != 1 {
		t.Errorf("got %+v", got)
	}
}

// Two opens of a rank at once: it stalls once, though both wait.
func TestOpensOfOneRankAtOnce(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	first, second := a.Open("train", 0), a.Open("train", 0)
	end := first.For(stall.Source)
	k.pass(10)
	also := second.For(stall.Disk)
	k.pass(10)
	first.End(end)
	first.Done(1, nil)
	k.pass(10)
	second.End(also)
	second.Done(1, nil)
	got := only(t, a).Totals
	if got.Time != 30e6 || got.Stalled != 30e6 || got.Wait != (stall.ByCause{stall.Source: 20e6, stall.Disk: 20e6}) {
		t.Errorf("got %+v", got)
	}
}

// A window tells what is now, whatever was before.
func TestWindow(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	for range 100 { // ten ms of a hundred, and two ranks
		for rank := range uint64(2) {
			waiting(a, k, "train", rank, stall.Source, 10)
			k.pass(40)
		}
	}
	for range 1000 { // none any more, and one rank
		ready(a, "train", 0)
		k.pass(100)
	}
	j := only(t, a)
	if j.Now.Width < 9e9 || j.Now.Width > 11e9 || j.Recently.Width < 59e9 || j.Recently.Width > 61e9 {
		t.Errorf("windows of %v and %v, want 10 s and a minute", j.Now.Width, j.Recently.Width)
	}
	n := j.Now
	if n.Totals.Stalled != 0 || n.Ranks != 1 || n.Totals.Time != n.Width || n.Totals.Opens != uint64(n.Width/100e6)-1 {
		t.Errorf("now %+v, want one rank that opens ten batches a second", n)
	}
	if s := j.Totals.Share(); s < 0.01 || s > 0.1 {
		t.Errorf("a share of %v in all", s)
	}
}

// A long wait fills its window, though nothing happens in it.
func TestWindowOfOneLongWait(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	ready(a, "train", 3)
	k.pass(1000)
	o := a.Open("train", 3)
	defer o.End(o.For(stall.Source))
	for range 30 {
		k.pass(1000)
		a.Report() // as rankfs stall asks while it waits
	}
	n := only(t, a).Now
	if n.Totals.Share() != 1 || n.Totals.Wait[stall.Source] != n.Width || n.Width != 10e9 {
		t.Errorf("got %+v, want all of 10 s", n)
	}
}

// There is an end to what is remembered; what is forgotten is counted.
func TestForgetsTheOldest(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	o := a.Open("waits", 0)
	end := o.For(stall.Overhead)
	const jobs = 200
	for i := range jobs {
		k.pass(1)
		for rank := range uint64(50) {
			ready(a, fmt.Sprint(i), rank)
		}
	}
	r := a.Report()
	if len(r.Jobs) != 64 || r.Forgotten != jobs+1-64 || r.Jobs[0].Name != fmt.Sprint(jobs-1) {
		t.Errorf("%d jobs known, %d forgotten, the last one is %s", len(r.Jobs), r.Forgotten, r.Jobs[0].Name)
	}
	if got := r.All(); got.Opens != jobs*50 {
		t.Errorf("%d opens in all, want %d", got.Opens, jobs*50)
	}
	o.End(end)
	o.Done(0, nil)
	if got := a.Report().All(); got.Waited != 1 || got.Wait[stall.Overhead] != jobs*1e6 {
		t.Errorf("the one that waited: %+v", got)
	}
}

// However many ranks there are, all opens count, and time only of those that
// are followed.
func TestTooManyRanks(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	for rank := range uint64(5000) {
		ready(a, "train", rank)
	}
	waiting(a, k, "train", 4999, stall.Source, 10)
	j := only(t, a)
	if len(j.Ranks) != 4096 || j.Totals.Opens != 5001 || j.Totals.Stalled != 0 || j.Totals.Wait.Sum() != 10e6 {
		t.Errorf("%d ranks, %+v", len(j.Ranks), j.Totals)
	}
}

// Whatever ranks do, the causes of their waits come to the whole, and no rank stalls for
// longer than it was there.
func TestTotalsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTicker()
		a := stall.NewTable(k.now)
		type open struct {
			stall.Open
			end   stall.Wait
			begin time.Time
		}
		var under []*open
		var waits time.Duration
		done := 0
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				k.pass(time.Duration(rapid.SampledFrom([]int{1, 7, 900, 3000, 61000}).Draw(t, "ms")))
			},
			"ready": func(t *rapid.T) {
				ready(a, "train", uint64(rapid.IntRange(0, 3).Draw(t, "rank")))
				done++
			},
			"wait": func(t *rapid.T) {
				o := &open{Open: a.Open("train", uint64(rapid.IntRange(0, 3).Draw(t, "rank"))), begin: k.now()}
				o.end = o.For(stall.Cause(rapid.IntRange(0, int(stall.Causes)-1).Draw(t, "cause")))
				under = append(under, o)
			},
			"end": func(t *rapid.T) {
				if len(under) == 0 {
					return
				}
				i := rapid.IntRange(0, len(under)-1).Draw(t, "open")
				o := under[i]
				under = append(under[:i], under[i+1:]...)
				o.Open.End(o.end)
				o.Done(1000, nil)
				waits += k.now().Sub(o.begin)
				done++
			},
			"": func(t *rapid.T) {
				r := a.Report()
				if len(r.Jobs) == 0 {
					return
				}
				j, sum, soFar := r.Jobs[0], stall.Totals{}, waits
				for _, o := range under {
					soFar += k.now().Sub(o.begin)
				}
				for _, one := range j.Ranks {
					if one.Totals.Stalled > one.Totals.Time {
						t.Fatalf("rank %d stalled for %v of %v", one.Rank, one.Totals.Stalled, one.Totals.Time)
					}
					sum.Opens += one.Totals.Opens
					sum.Time += one.Totals.Time
					sum.Stalled += one.Totals.Stalled
				}
				if sum.Opens != j.Totals.Opens || sum.Time != j.Totals.Time || sum.Stalled != j.Totals.Stalled || int(sum.Opens) != done {
					t.Fatalf("the ranks come to %+v, the job to %+v, %d opens are done", sum, j.Totals, done)
				}
				if j.Totals.Wait.Sum() != soFar || j.Waiting != len(under) {
					t.Fatalf("%d wait for %v in all, want %d for %v", j.Waiting, j.Totals.Wait.Sum(), len(under), soFar)
				}
				for _, w := range []stall.Window{j.Now, j.Recently} {
					if w.Totals.Stalled > w.Totals.Time || w.Totals.Time > 4*w.Width {
						t.Fatalf("window %+v", w)
					}
					for c, d := range w.Totals.Wait {
						if d < 0 {
							t.Fatalf("window with %v of %v", d, stall.Cause(c))
						}
					}
				}
			},
		})
	})
}

// What flows is counted once, however many are at it.
func TestFlows(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	one, two := stall.With(t.Context(), a.Clock(stall.Overhead)), stall.With(t.Context(), a.Clock(stall.Overhead))
	first := stall.Enter(one, stall.Source)
	k.pass(10)
	second := stall.Enter(two, stall.Source)
	k.pass(10)
	first.Leave(3 << 20)
	k.pass(5)
	second.Leave(2 << 20)
	k.pass(1000)
	want := stall.Flow{Bytes: 5 << 20, Busy: 25 * time.Millisecond, Held: 35 * time.Millisecond}
	if got := a.Report().Flows[stall.Source]; got != want || got.Rate() != 200<<20 {
		t.Errorf("got %+v, %v a second; want %+v", got, got.Rate(), want)
	}
	outer := stall.Enter(one, stall.Decode)
	k.pass(1)
	inner := stall.Enter(one, stall.Peer)
	k.pass(2)
	inner.Leave(7)
	k.pass(4)
	outer.Leave(8)
	all := a.Report().Flows
	if all[stall.Decode] != (stall.Flow{Bytes: 8, Busy: 5 * time.Millisecond, Held: 5 * time.Millisecond}) || all[stall.Peer] != (stall.Flow{Bytes: 7, Busy: 2 * time.Millisecond, Held: 2 * time.Millisecond}) {
		t.Errorf("one inside of the other: %+v", all)
	}
	mine := stall.NewFlows(k.now)
	ctx := stall.With(t.Context(), a.Clock(stall.Overhead))
	stall.Of(ctx, mine)
	m := stall.Enter(stall.Fork(ctx), stall.Source)
	k.pass(3)
	m.Leave(9)
	if got := mine.Read()[stall.Source]; got != (stall.Flow{Bytes: 9, Busy: 3 * time.Millisecond, Held: 3 * time.Millisecond}) || a.Report().Flows[stall.Source].Bytes != want.Bytes+9 {
		t.Errorf("of one source: %+v, of all: %+v", got, a.Report().Flows[stall.Source])
	}
	if got := a.Report().Flows[stall.Disk]; got != (stall.Flow{}) || got.Rate() != 0 {
		t.Errorf("of disks: %+v", got)
	}
}

// What comes from a source by one of its ways is counted with the source, and
// apart.
func TestWays(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	c := a.Clock(stall.Overhead)
	w := c.Wait(k.now())
	ctx := stall.With(t.Context(), c)
	source := stall.Enter(ctx, stall.Source)
	k.pass(1)
	for i, way := range []stall.Cause{stall.ByFile, stall.ByTCP, stall.Remote} {
		m := stall.Enter(ctx, way)
		k.pass(time.Duration(10 * (i + 1)))
		m.Leave(int64(i + 1))
	}
	source.Leave(6)
	k.pass(1000)
	if got, want := w.ByCause(), (stall.ByCause{stall.Overhead: 1e9, stall.Source: 1e6, stall.ByFile: 10e6, stall.ByTCP: 20e6, stall.Remote: 30e6}); got != want {
		t.Errorf("waited %v, want %v", got, want)
	}
	var want [stall.Causes]stall.Flow
	for cause, ms := range map[stall.Cause]time.Duration{stall.Source: 61, stall.ByFile: 10, stall.ByTCP: 20, stall.Remote: 30} {
		want[cause] = stall.Flow{Busy: ms * time.Millisecond, Held: ms * time.Millisecond}
	}
	want[stall.Source].Bytes, want[stall.ByFile].Bytes, want[stall.ByTCP].Bytes, want[stall.Remote].Bytes = 6, 1, 2, 3
	if got := a.Report().Flows; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadyOpenAllocatesNothing(t *testing.T) {
	a := stall.NewTable(time.Now)
	ready(a, "train", 3)
	if n := testing.AllocsPerRun(10000, func() { ready(a, "train", 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReadyOpen(b *testing.B) {
	a := stall.NewTable(time.Now)
	for b.Loop() {
		ready(a, "train@epoch=0,ranks=8", 3)
	}
}

// Jobs of one name that are of datasets which were registered at other times are apart, also
// while opens of the first go on, and those that match are among the others.
func TestJobsOfAnotherRegistration(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	before := a.Open("d", 0)
	before.Of = 1
	w := before.For(stall.Source)
	k.pass(5)
	now := a.Open("d", 0)
	now.Of = 2
	now.Done(10, nil)
	before.End(w)
	before.Done(20, nil)
	r := a.Report()
	if len(r.Jobs) != 2 {
		t.Fatalf("jobs %+v", r.Jobs)
	}
	r = r.Without(func(j stall.Job) bool { return j.Of == 1 })
	if len(r.Jobs) != 1 || r.Jobs[0].Of != 2 || r.Jobs[0].Totals.Opens != 1 || r.Jobs[0].Totals.Bytes != 10 || r.Jobs[0].Totals.Waited != 0 {
		t.Errorf("the job of the dataset that is there: %+v", r.Jobs)
	}
	if r.Others.Opens != 1 || r.Others.Bytes != 20 || r.Others.Wait[stall.Source] != 5e6 || r.Forgotten != 1 || r.All().Opens != 2 {
		t.Errorf("others: %+v", r.Others)
	}
}

// A rank reads for as long as it waits, and until it was silent for longer than a gap. It
// is one of its job, however many opens it has under way, and in whichever order they are.
func TestReading(t *testing.T) {
	k := newTicker()
	a := stall.NewTable(k.now)
	reading := func(want int, when string) {
		t.Helper()
		if r := a.Report(); r.Reading() != want {
			t.Errorf("%s: %d ranks read, want %d", when, r.Reading(), want)
		}
	}
	reading(0, "at first")
	ready(a, "train", 0)
	reading(1, "once opened")
	one, other := a.Open("train", 1), a.Open("train", 1)
	first, second := one.For(stall.Source), other.For(stall.Source)
	ready(a, "test", 0)
	reading(3, "of two jobs, one of which waits")
	k.at = k.at.Add(stall.Gap)
	reading(3, "silent for a gap")
	k.at = k.at.Add(1)
	reading(1, "silent for longer, but for one that waits")
	one.End(first)
	one.Done(1000, nil)
	other.End(second)
	other.Done(1000, nil)
	k.at = k.at.Add(stall.Gap + 1)
	reading(0, "all are silent")
	ready(a, "train", 0)
	reading(1, "it is back")
}
