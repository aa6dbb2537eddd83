package stall_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta/stall"
)

// A ticker is a clock that goes only when it is told to.
type ticker struct{ at time.Time }

func newTicker() *ticker                { return &ticker{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }
func (k *ticker) now() time.Time        { return k.at }
func (k *ticker) pass(ms time.Duration) { k.at = k.at.Add(ms * time.Millisecond) }

// An open is charged for exactly what lies within its wait of each phase of a
// fill that does one thing after the other.
func TestWaitIsCutFromPhases(t *testing.T) {
	k := newTicker()
	c := stall.NewClock(k.now, stall.Admission)
	first := c.Wait(k.now())
	k.pass(10)
	c.Enter(stall.Source)
	k.pass(30)
	second := c.Wait(k.now()) // in the middle of a phase
	k.pass(50)
	left := first.ByCause() // its rank gave up
	c.Enter(stall.Decode)
	k.pass(5)
	if want := (stall.ByCause{stall.Admission: 10e6, stall.Source: 80e6}); left != want {
		t.Errorf("the first open: %v, want %v", left, want)
	}
	if got, want := second.ByCause(), (stall.ByCause{stall.Source: 50e6, stall.Decode: 5e6}); got != want {
		t.Errorf("the second open: %v, want %v", got, want)
	}
}

// What goes on at once shares the time; what is left alone bears the rest, and
// who only waits for others does not count.
func TestBranchesShareTheTime(t *testing.T) {
	k := newTicker()
	c := stall.NewClock(k.now, stall.Overhead)
	w := c.Wait(k.now())
	own := stall.With(t.Context(), c)
	other, third := stall.Fork(own), stall.Fork(own)
	source := stall.Enter(own, stall.Source)
	peer, also := stall.Enter(other, stall.Peer), stall.Enter(third, stall.Peer)
	k.pass(20) // two causes, though one of them twice
	source.Leave(100)
	idle := stall.Idle(own)
	k.pass(30)
	peer.Leave(0)
	k.pass(5)
	also.Leave(0)
	idle.Leave(0)
	k.pass(1)
	want := stall.ByCause{stall.Source: 10e6, stall.Peer: 45e6, stall.Overhead: 1e6}
	if got := w.ByCause(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What passed before a wait was on the clock is admission.
func TestWaitBeforeTheClock(t *testing.T) {
	k := newTicker()
	begin := k.now()
	k.pass(3)
	w := stall.NewClock(k.now, stall.Overhead).Wait(begin)
	k.pass(4)
	if got, want := w.ByCause(), (stall.ByCause{stall.Admission: 3e6, stall.Overhead: 4e6}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A batch that waits for a part goes through the part's causes, whichever fill makes that,
// and goes on with its own afterwards.
func TestFollow(t *testing.T) {
	k := newTicker()
	part, batch := stall.NewClock(k.now, stall.Admission), stall.NewClock(k.now, stall.Overhead)
	w := batch.Wait(k.now())
	ctx := stall.With(t.Context(), batch)
	k.pass(1)
	stop := stall.Follow(ctx, part)
	k.pass(2)
	m := stall.Enter(stall.With(t.Context(), part), stall.Source)
	k.pass(4)
	m.Leave(0)
	part.Enter(stall.Disk)
	k.pass(8)
	stop()
	part.Enter(stall.Peer) // is nothing to the batch any more
	k.pass(16)
	want := stall.ByCause{stall.Overhead: 17e6, stall.Admission: 2e6, stall.Source: 4e6, stall.Disk: 8e6}
	if got := w.ByCause(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Without a clock marks do nothing.
func TestNoClock(t *testing.T) {
	ctx := stall.Fork(t.Context())
	m := stall.Enter(ctx, stall.Peer)
	stall.Follow(ctx, stall.NewClock(time.Now, stall.Overhead))()
	m.Leave(1)
	if ctx != t.Context() {
		t.Error("a fork of nothing is something")
	}
	if n := testing.AllocsPerRun(100, func() { stall.Enter(ctx, stall.Peer).Leave(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A line is what the model knows of a branch: the marks it is in, one inside
// the other.
type line struct {
	ctx    context.Context
	marks  []stall.Mark
	causes []stall.Cause
}

// In any history of branches, marks and waits, each wait's causes come to the
// wait, and each is what a model says that goes through it millisecond by
// millisecond.
func TestCausesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTicker()
		c := stall.NewClock(k.now, stall.Overhead)
		lines := []*line{{ctx: stall.With(context.Background(), c), causes: []stall.Cause{stall.Overhead}}}
		type wait struct {
			stall.Wait
			begin time.Time
			model stall.ByCause
		}
		var waits []*wait
		check := func(w *wait) {
			got := w.ByCause()
			if got.Sum() != k.now().Sub(w.begin) {
				t.Fatalf("the causes %v of a wait of %v come to %v", got, k.now().Sub(w.begin), got.Sum())
			}
			for i := range got {
				if d := (got[i] - w.model[i]).Abs(); d > time.Microsecond { // of rounding
					t.Fatalf("got %v, the model has %v", got, w.model)
				}
			}
		}
		cause := rapid.IntRange(0, int(stall.Causes)-1)
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "ms") {
					var under []stall.Cause
					seen := make(map[stall.Cause]bool)
					for _, l := range lines {
						if n := len(l.causes); n > 0 && l.causes[n-1] != stall.Causes && !seen[l.causes[n-1]] {
							seen[l.causes[n-1]] = true
							under = append(under, l.causes[n-1])
						}
					}
					if len(under) == 0 {
						under = append(under, stall.Overhead)
					}
					for _, w := range waits {
						for _, u := range under {
							w.model[u] += time.Millisecond / time.Duration(len(under))
						}
					}
					k.pass(1)
				}
			},
			"enter": func(t *rapid.T) {
				l := rapid.SampledFrom(lines).Draw(t, "branch")
				u := stall.Cause(cause.Draw(t, "cause"))
				l.marks, l.causes = append(l.marks, stall.Enter(l.ctx, u)), append(l.causes, u)
			},
			"idle": func(t *rapid.T) {
				l := rapid.SampledFrom(lines).Draw(t, "branch")
				l.marks, l.causes = append(l.marks, stall.Idle(l.ctx)), append(l.causes, stall.Causes)
			},
			"leave": func(t *rapid.T) {
				l := rapid.SampledFrom(lines).Draw(t, "branch")
				n := len(l.marks)
				if n == 0 {
					return // it is in nothing
				}
				l.marks[n-1].Leave(1)
				l.marks, l.causes = l.marks[:n-1], l.causes[:len(l.causes)-1]
			},
			"fork": func(t *rapid.T) {
				if len(lines) < 5 {
					lines = append(lines, &line{ctx: stall.Fork(lines[0].ctx)})
				}
			},
			"wait": func(t *rapid.T) {
				waits = append(waits, &wait{c.Wait(k.now()), k.now(), stall.ByCause{}})
			},
			"resume": func(t *rapid.T) {
				if len(waits) == 0 {
					return
				}
				i := rapid.IntRange(0, len(waits)-1).Draw(t, "wait")
				check(waits[i])
				waits = append(waits[:i], waits[i+1:]...)
			},
			"": func(t *rapid.T) {
				for _, w := range waits {
					check(w)
				}
			},
		})
	})
}
