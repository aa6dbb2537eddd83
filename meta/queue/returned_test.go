package queue_test

import (
	"slices"
	"testing"
	"time"

	"rankfs/meta/queue"
)

// A unit that a reader gave back, or had when it left, comes again once all others are taken.
func TestReturnedGoesLast(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			s := scheduler(t, policy, [][]int{{0}, {1}, {0, 1}, {}, {0}})
			if err := s.Join(0, 0, 0); err != nil {
				t.Fatal(err)
			}
			back := []int{take(t, s, 0, 0)}
			s.Leave(0)
			if err := s.Join(0, 1, 0); err != nil {
				t.Fatal(err)
			}
			back = append(back, take(t, s, 0, 1))
			s.Returned(1, back[1])
			for i := range 5 {
				unit := take(t, s, 0, 1)
				if late := slices.Contains(back, unit); late != (i >= 3) {
					t.Errorf("unit %d comes after %d others; returned were %d", unit, i, back)
				}
				s.Finished(0, 1, unit)
			}
		})
	}
}

// A new scheduler has to be told what was returned to the one before it.
func TestPostpone(t *testing.T) {
	s := crewOf(t, 3, time.Second)
	for range 2 { // the second time nothing is new
		s.Postpone(0)
	}
	for _, want := range []int{1, 2, 0} {
		unit := take(t, s, 0, 0)
		if unit != want {
			t.Errorf("unit %d instead of %d", unit, want)
		}
		s.Postpone(unit) // it is held: this says nothing
		s.Finished(0, 0, unit)
	}
	if a, err := s.Next(0, 0); err != nil || a.Verdict != queue.Over {
		t.Errorf("%+v, %v", a, err)
	}
}

// A unit that is set aside is offered to no reader, nor as a second copy; it is over when the
// reader that has it is done with it, or gives it back.
func TestSetAside(t *testing.T) {
	for _, end := range []string{"finished", "returned", "left"} {
		t.Run(end, func(t *testing.T) {
			s := crewOf(t, 3, time.Minute, time.Second, time.Second)
			held := take(t, s, 0, 1)
			if !s.SetAside(held) || s.SetAside(held) {
				t.Error("it is news once")
			}
			offered, err := s.Next(0, 2)
			if err != nil || offered.Verdict != queue.Take {
				t.Fatalf("%+v, %v", offered, err)
			}
			before := s.Changes()
			if !s.SetAside(offered.Unit) || s.Changes() == before {
				t.Error("a reader that waits would not be woken")
			}
			last := take(t, s, 0, 2)
			s.Finished(time.Second, 2, last)
			late := time.Hour // by which any other reader would be faster
			waits(t, s, late, 2)
			switch end {
			case "finished":
				s.Finished(late, 1, held)
			case "returned":
				s.Returned(1, held)
			case "left":
				s.Leave(1)
			}
			if a, err := s.Next(late, 2); err != nil || a.Verdict != queue.Over {
				t.Errorf("%+v, %v", a, err)
			}
			if s.SetAside(held) || s.SetAside(last) {
				t.Error("what is over is set aside")
			}
		})
	}
}

// What is free, or postponed, is over as soon as it is set aside.
func TestAllSetAside(t *testing.T) {
	s := crewOf(t, 2, time.Second)
	s.Returned(0, take(t, s, 0, 0))
	for unit := range 2 {
		if !s.SetAside(unit) {
			t.Errorf("unit %d is no news", unit)
		}
	}
	if a, err := s.Next(0, 0); err != nil || a.Verdict != queue.Over {
		t.Errorf("%+v, %v", a, err)
	}
}
