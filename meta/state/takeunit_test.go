package state_test

import (
	"fmt"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// The life of a unit that two hold, one of them on a node that goes down.
func TestSteps(t *testing.T) {
	c := founded(t, 3)
	v := view(1, 3)
	open := c.do(&state.OpenQueue{View: v, Generation: 1, Units: 100, Policy: "flow", Seed: 7}).Queue()
	if second := c.do(&state.OpenQueue{View: v, Generation: 1, Units: 50, Policy: "other"}).Queue(); *second != *open {
		t.Fatalf("the second to open it got %+v", second)
	}
	var nonce uint64
	step := func(reader int, finish bool, take int64) *state.TakeUnit {
		nonce++
		return &state.TakeUnit{
			View: v, Reader: fmt.Sprint(reader), Node: id(1 + reader%3), Rank: uint64(reader % 3),
			Finish: finish, Take: take, Nonce: nonce,
		}
	}
	expect := func(s *state.TakeUnit, want state.TakenUnit) {
		t.Helper()
		for range 2 { // the second time it is sent again
			if got := c.do(s).Taken(); *got != want {
				t.Fatalf("got %+v, want %+v", *got, want)
			}
		}
	}
	expect(step(0, false, 5), state.TakenUnit{Unit: 5, Finished: -1})
	expect(step(1, false, 5), state.TakenUnit{Unit: 5, Finished: -1})
	expect(step(2, false, 5), state.TakenUnit{Unit: -1, Finished: -1, Refused: state.RefusedHeld})
	c.refuse(meta.ErrInvalid, step(0, false, 6))  // holds 5
	c.refuse(meta.ErrInvalid, step(2, true, 100)) // there are 100
	expect(step(2, true, 6), state.TakenUnit{Unit: 6, Finish: state.Returned, Finished: -1})
	expect(step(0, true, 7), state.TakenUnit{Unit: 7, Finish: state.Finished, Finished: 5})
	expect(step(1, true, 5), state.TakenUnit{Unit: -1, Finish: state.Lost, Finished: 5, Refused: state.RefusedDone})
	expect(step(2, true, 8), state.TakenUnit{Unit: 8, Finish: state.Finished, Finished: 6})

	down := id(1 + 2%3)
	c.do(&state.Health{ID: down})
	c.refuse(meta.ErrUnavailable, step(2, false, 9))
	expect(step(2, true, -1), state.TakenUnit{Unit: -1, Finish: state.Returned, Finished: -1})
	c.do(&state.Health{ID: down, Up: true})
	expect(step(1, false, 8), state.TakenUnit{Unit: 8, Finished: -1})

	c.do(&state.LeaveQueue{View: v, Reader: "1"})
	c.refuse(meta.ErrDenied, step(1, false, 9))
	c.do(&state.LeaveQueue{View: v, Reader: "3"}) // before its first step arrives
	c.refuse(meta.ErrDenied, step(3, false, 9))
	moved := step(0, true, -1)
	moved.Node = id(2)
	c.refuse(meta.ErrInvalid, moved)

	q, _ := c.m.Queue(v)
	if q.Done != 2 || q.Held != 1 || q.Readers != 2 || q.Seed != 7 {
		t.Fatalf("%+v", q)
	}
	if w, _ := c.m.Reader(v, "0"); w.Units != 1 || w.Busy != w.Since-open.Opened-2e9 {
		t.Fatalf("%+v, opened at %d", w, open.Opened)
	}

	if r := c.do(&state.ResetQueue{View: v, Resets: 0}).Queue(); r.Resets != 1 || r.Done != 0 || r.Held != 0 {
		t.Fatalf("%+v", r)
	}
	expect(step(0, true, 5), state.TakenUnit{Unit: 5, Finish: state.Returned, Finished: -1})
	if r := c.do(&state.ResetQueue{View: v, Resets: 0}).Queue(); r.Resets != 1 || r.Held != 1 { // sent again
		t.Fatalf("%+v", r)
	}
	c.refuse(meta.ErrInvalid, &state.ResetQueue{View: v, Resets: 2})
	c.do(&state.DropQueue{View: v})
	c.refuse(meta.ErrNotExist, step(0, true, 5))
	c.refuse(meta.ErrNotExist, &state.ResetQueue{View: v, Resets: 1})
	c.do(&state.LeaveQueue{View: v, Reader: "0"})
}
