package state_test

import (
	"fmt"
	"slices"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// giveBack has a reader of node 1 take a unit and leave.
func (c *cluster) giveBack(view, reader string, unit int64) {
	c.t.Helper()
	if r := c.take(view, reader, unit); r.Unit != unit {
		c.t.Fatalf("unit %d: %+v", unit, r)
	}
	c.do(&state.LeaveQueue{View: view, Reader: reader})
}

func (c *cluster) take(view, reader string, unit int64) state.TakenUnit {
	c.t.Helper()
	return *c.do(c.mine(&state.TakeUnit{View: view, Reader: reader, Node: id(1), Take: unit, Nonce: 1})).Taken()
}

func (c *cluster) finish(view, reader string) state.Finish {
	c.t.Helper()
	return c.do(c.mine(&state.TakeUnit{View: view, Reader: reader, Node: id(1), Finish: true, Take: -1, Nonce: 2})).Taken().Finish
}

func (c *cluster) returns(view string) []int {
	var n []int
	for _, s := range c.m.Suspects(view) {
		if s.Aside() != (c.m.Fate(view, s.Unit) == state.SetAside) {
			c.t.Errorf("suspect %+v, fate %v", s, c.m.Fate(view, s.Unit))
		}
		n = append(n, len(s.By))
	}
	return n
}

// What so many readers gave back is given to none any more.
func TestSetAside(t *testing.T) {
	c := founded(t, 2)
	v := view(1, 1)
	c.do(&state.OpenQueue{View: v, Generation: 1, Units: 3, Policy: "flow"})
	c.giveBack(v, "a", 1)
	c.take(v, "b", 1)
	for range 3 { // its node flaps: that is one reader still
		c.do(&state.Health{ID: id(1)})
		c.do(&state.Health{ID: id(1), Up: true})
		c.do(&state.TakeUnit{View: v, Reader: "b", Node: id(1), Take: 1, Nonce: c.index})
	}
	c.m = through(t, c.m) // as a new leader would know it
	if got := c.returns(v); !slices.Equal(got, []int{2}) {
		t.Fatalf("returned by %d readers", got)
	}
	c.do(&state.TakeUnit{View: v, Reader: "c", Node: id(2), Take: 1, Nonce: 1})
	c.do(&state.Remove{ID: id(2)})
	if q, _ := c.m.Queue(v); q.Aside != 0 {
		t.Fatalf("%+v", q)
	}
	c.do(&state.LeaveQueue{View: v, Reader: "b"}) // which has returned it before
	c.take(v, "second", 1)
	c.giveBack(v, "d", 1)
	if q, _ := c.m.Queue(v); q.Aside != 1 || q.Held != 1 {
		t.Fatalf("%+v", q)
	}
	by := c.m.Suspects(v)[0].By
	var causes []state.Cause
	for _, r := range by {
		causes = append(causes, r.Cause)
	}
	if want := []state.Cause{state.Closed, state.Down, state.Removal, state.Closed}; !slices.Equal(causes, want) || by[2].Node != id(2) {
		t.Fatalf("%+v", by)
	}
	c.m = through(t, c.m)
	if r := c.take(v, "e", 1); r.Refused != state.RefusedAside {
		t.Fatalf("%+v", r)
	}
	c.do(&state.LeaveQueue{View: v, Reader: "second"})
	if got := c.returns(v); !slices.Equal(got, []int{4}) {
		t.Fatalf("returned by %d readers", got)
	}
}

// The reader that has a unit when it is set aside may finish it, and then it is done.
func TestASuspectIsFinished(t *testing.T) {
	c := founded(t, 1)
	v := view(1, 1)
	c.do(&state.OpenQueue{View: v, Generation: 1, Units: 3, Policy: "flow"})
	c.take(v, "slow", 2)
	for n := range state.MaxReturns {
		c.giveBack(v, fmt.Sprint(n), 2)
	}
	if fate := c.m.Fate(v, 2); fate != state.SetAside {
		t.Fatal(fate)
	}
	if got := c.finish(v, "slow"); got != state.Finished {
		t.Fatal(got)
	}
	if q, _ := c.m.Queue(v); q.Aside != 0 || q.Done != 1 || c.m.Fate(v, 2) != state.Done || len(c.m.Suspects(v)) != 0 {
		t.Fatalf("%+v", q)
	}
	c.take(v, "one", 1)
	c.take(v, "other", 1)
	c.finish(v, "one")
	c.do(&state.LeaveQueue{View: v, Reader: "other"}) // without a word about what is done
	if len(c.m.Suspects(v)) != 0 || c.m.Suspects(view(2, 1)) != nil || c.m.Fate(v, 3) != state.Undone {
		t.Fatalf("%+v", c.m.Suspects(v))
	}
}

// What was set aside can be given to readers again, with all the rest or alone.
func TestResetAside(t *testing.T) {
	c := founded(t, 1)
	v := view(1, 1)
	c.do(&state.OpenQueue{View: v, Generation: 1, Units: 4, Policy: "flow"})
	for n := range state.MaxReturns {
		c.giveBack(v, fmt.Sprint(n), 2)
	}
	c.giveBack(v, "x", 3)
	c.take(v, "y", 0)
	c.finish(v, "y")
	c.take(v, "z", 1)
	if q := c.do(&state.ResetQueue{View: v, Aside: true}).Queue(); q.Resets != 1 || q.Aside != 0 || q.Done != 1 || q.Held != 1 {
		t.Fatalf("%+v", q)
	}
	if got := c.finish(v, "z"); got != state.Finished || len(c.m.Suspects(v)) != 0 {
		t.Fatal(got)
	}
	for n := range state.MaxReturns {
		c.giveBack(v, fmt.Sprint("again", n), 2)
	}
	if q := c.do(&state.ResetQueue{View: v, Resets: 1}).Queue(); q.Resets != 2 || q.Aside != 0 || q.Done != 0 {
		t.Fatalf("%+v", q)
	}
	if w, _ := c.m.Reader(v, "z"); w.Units != 0 || w.Busy != 0 {
		t.Fatalf("in a new run %+v has done something", w)
	}
	if s := c.m.Suspects(v); len(s) != 0 {
		t.Fatalf("%+v", s)
	}
}

// A queue of which nothing is left but what was set aside makes room for others.
func TestAsideIsOver(t *testing.T) {
	c := founded(t, 1)
	for epoch := range state.MaxQueues {
		c.begin(epoch, 2, 0)
	}
	another := opening(1<<16, 2, 0)
	c.finish(view(7, 1), "w")
	for n := range state.MaxReturns {
		c.refuse(meta.ErrBusy, another)
		c.giveBack(view(7, 1), fmt.Sprint(n), 1)
	}
	c.do(another)
	if _, ok := c.m.Queue(view(7, 1)); ok {
		t.Fatal("another queue was dropped")
	}
}

// When all readers of a queue end at once, as many times as it takes, all that
// they had is set aside; what does not fit any more is given out as before.
func TestSuspectBounds(t *testing.T) {
	c := founded(t, 1)
	v := view(1, 1)
	const spare = 2
	c.do(&state.OpenQueue{View: v, Generation: 1, Units: state.MaxSuspects + spare, Policy: "flow"})
	for n := range int64(state.MaxSuspects + spare) {
		c.giveBack(v, fmt.Sprint("w", n), n)
	}
	if got := c.m.Suspects(v); len(got) != state.MaxSuspects || got[len(got)-1].Unit != state.MaxSuspects-1 {
		t.Fatalf("%d suspects", len(got))
	}
	c.take(v, "good", 3)
	c.finish(v, "good")
	c.giveBack(v, "x", state.MaxSuspects)
	c.giveBack(v, "y", state.MaxSuspects+1)
	if got := c.m.Suspects(v); len(got) != state.MaxSuspects || got[len(got)-1].Unit != state.MaxSuspects {
		t.Fatalf("%d suspects, the last %+v", len(got), got[len(got)-1])
	}
	through(t, c.m)
}
