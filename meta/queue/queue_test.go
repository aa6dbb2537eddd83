package queue_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/queue"
)

func scheduler(t *testing.T, policy queue.Policy, hold [][]int) *queue.Scheduler {
	t.Helper()
	s, err := queue.New(len(hold), holders(hold), policy, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsRefused(t *testing.T) {
	restore := func(done []uint64, leases []queue.Lease, readers ...queue.History) func(*queue.Scheduler) error {
		return func(s *queue.Scheduler) error { return s.Restore(0, done, leases, readers) }
	}
	none := []uint64{0}
	for _, tt := range []struct {
		name string
		do   func(*queue.Scheduler) error
		want error
	}{
		{"a reader twice", func(s *queue.Scheduler) error { return s.Join(0, 7, 1) }, meta.ErrExist},
		{"a node below 0", func(s *queue.Scheduler) error { return s.Join(0, 8, -1) }, meta.ErrInvalid},
		{"a node too many", func(s *queue.Scheduler) error { return s.Join(0, 8, queue.MaxNodes) }, meta.ErrInvalid},
		{"an unknown reader asks", func(s *queue.Scheduler) error { _, err := s.Next(0, 8); return err }, meta.ErrNotExist},
		{"too few words", restore(nil, nil), meta.ErrInvalid},
		{"too many words", restore([]uint64{0, 0}, nil), meta.ErrInvalid},
		{"restored twice", restore(none, nil, queue.History{Reader: 1}, queue.History{Reader: 1}), meta.ErrExist},
		{"restored nowhere", restore(none, nil, queue.History{Reader: 1, Node: -1}), meta.ErrInvalid},
		{"less than no units", restore(none, nil, queue.History{Reader: 1, Units: -1}), meta.ErrInvalid},
		{"less than no time", restore(none, nil, queue.History{Reader: 1, Units: 1, Took: -1}), meta.ErrInvalid},
		{"a lease of an unknown reader", restore(none, []queue.Lease{{Reader: 1}}), meta.ErrNotExist},
		{"a lease of nothing", restore(none, []queue.Lease{{Reader: 1, Unit: 3}}, queue.History{Reader: 1}), meta.ErrInvalid},
		{"three leases", restore(none, []queue.Lease{{Reader: 1}, {Reader: 2}, {Reader: 3}},
			queue.History{Reader: 1}, queue.History{Reader: 2}, queue.History{Reader: 3}), meta.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scheduler(t, queue.PolicyFlow, [][]int{{0}, {1}, {2}})
			if err := s.Join(0, 7, 0); err != nil {
				t.Fatal(err)
			}
			if err := tt.do(s); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestHoldersRefused(t *testing.T) {
	for _, h := range []queue.Holder{{Node: -1, Bytes: 1}, {Node: queue.MaxNodes, Bytes: 1}, {Node: 0, Bytes: -1}} {
		if _, err := queue.New(1, func(int) []queue.Holder { return []queue.Holder{h} }, queue.PolicyFlow, 0); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	for _, units := range []int{-1, queue.MaxUnits + 1} {
		if _, err := queue.New(units, nil, queue.PolicyFlow, 0); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%d units: %v", units, err)
		}
	}
}

// A unit counts as held by a node if no other has much more of it.
func TestPartsOfUnits(t *testing.T) {
	of := [][]queue.Holder{
		{{Node: 0, Bytes: 100}, {Node: 1, Bytes: 70}},
		{{Node: 0, Bytes: 70}, {Node: 1, Bytes: 100}, {Node: 1, Bytes: 100}},
		{{Node: 0, Bytes: 0}, {Node: 1, Bytes: 1}},
	}
	s, err := queue.New(len(of), func(unit int) []queue.Holder { return of[unit] }, queue.PolicyFlow, 0)
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range []int{0, 1} {
		if err := s.Join(0, node, node); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Next(0, node); err != nil || a.Unit != want {
			t.Errorf("node %d gets %+v, %v, want unit %d", node, a, err, want)
		}
	}
}

// Where everything is everywhere, units go out in their own order.
func TestUnitsGoOutInOrder(t *testing.T) {
	s := scheduler(t, queue.PolicyFlow, make([][]int, 10))
	if err := s.Join(0, 0, 0); err != nil {
		t.Fatal(err)
	}
	for want := range 10 {
		if got := take(t, s, 0, 0); got != want {
			t.Fatalf("unit %d after %d", got, want-1)
		}
		s.Finished(0, 0, want)
	}
}

// take has a reader take what it is told to.
func take(t *testing.T, s *queue.Scheduler, now time.Duration, reader int) int {
	t.Helper()
	a, err := s.Next(now, reader)
	if err != nil || a.Verdict != queue.Take {
		t.Fatalf("reader %d: %+v, %v", reader, a, err)
	}
	s.Began(now, reader, a.Unit)
	return a.Unit
}

// A unit that was offered to a reader is offered to it again until it is taken, and to no other.
func TestOffersAreKept(t *testing.T) {
	for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		t.Run(policy.String(), func(t *testing.T) {
			s := scheduler(t, policy, make([][]int, 2))
			var units []int
			for _, reader := range []int{0, 1, 0, 1} {
				if len(units) < 2 {
					if err := s.Join(0, reader, 0); err != nil {
						t.Fatal(err)
					}
				}
				a, err := s.Next(0, reader)
				if err != nil || a.Verdict != queue.Take || a.Second {
					t.Fatalf("%+v, %v", a, err)
				}
				units = append(units, a.Unit)
			}
			if !slices.Equal(units[:2], units[2:]) || units[0] == units[1] {
				t.Errorf("offered %v", units)
			}
		})
	}
}

// The one who finishes first ends it; the other is free again, with no unit.
func TestSecondFinisher(t *testing.T) {
	s := scheduler(t, queue.PolicyFlow, make([][]int, 3))
	for reader := range 2 {
		if err := s.Join(0, reader, 0); err != nil {
			t.Fatal(err)
		}
	}
	take(t, s, 0, 0)
	s.Finished(time.Second, 1, take(t, s, 0, 1))
	s.Finished(2*time.Second, 1, take(t, s, time.Second, 1))
	late := 10 * time.Second
	a, err := s.Next(late, 1)
	if err != nil || a.Verdict != queue.Take || !a.Second {
		t.Fatalf("%+v, %v", a, err)
	}
	s.Began(late, 1, a.Unit)
	s.Finished(late+time.Second, 1, a.Unit)
	s.Finished(late+2*time.Second, 0, a.Unit)
	for reader := range 2 {
		if a, err := s.Next(late+2*time.Second, reader); err != nil || a.Verdict != queue.Over {
			t.Errorf("reader %d: %+v, %v", reader, a, err)
		}
	}
}

// crewOf has readers on node 0 that have done one unit each, in so long.
func crewOf(t *testing.T, units int, each ...time.Duration) *queue.Scheduler {
	t.Helper()
	s := scheduler(t, queue.PolicyFlow, make([][]int, units))
	var readers []queue.History
	for id, took := range each {
		readers = append(readers, queue.History{Reader: id, Units: 1, Took: took})
	}
	if err := s.Restore(0, make([]uint64, (units+63)/64), nil, readers); err != nil {
		t.Fatal(err)
	}
	return s
}

func waits(t *testing.T, s *queue.Scheduler, now time.Duration, reader int) {
	t.Helper()
	if a, err := s.Next(now, reader); err != nil || a.Verdict != queue.Wait {
		t.Fatalf("reader %d: %+v, %v", reader, a, err)
	}
}

// A slow reader leaves the last units to faster ones, until one of these is gone.
func TestSlowReaderWaits(t *testing.T) {
	s := crewOf(t, 2, 1500*time.Millisecond, time.Second, time.Second)
	waits(t, s, 0, 0)
	before := s.Changes()
	s.Leave(1)
	if s.Changes() == before {
		t.Error("a reader that waits would not be woken")
	}
	take(t, s, 0, 0)
}

// A unit that was given back can be had again at once if no other is left, also by the reader
// that gave it back.
func TestReturnedUnit(t *testing.T) {
	each := slices.Repeat([]time.Duration{time.Second}, 32)
	s := crewOf(t, 32, each...)
	unit := take(t, s, 0, 0)
	before := s.Changes()
	s.Returned(0, unit)
	if s.Changes() == before {
		t.Error("a reader that waits would not be woken")
	}
	take(t, s, 0, 0)
}

// Who lost a unit is not taken to be at work on it once it asks for another.
func TestLostUnitIsForgotten(t *testing.T) {
	s := crewOf(t, 2, time.Second, time.Second)
	lost := take(t, s, 0, 0)
	s.Finished(time.Second, 1, lost)
	take(t, s, 2*time.Second, 0)
}

// If the group lets a third have a unit that was offered to a second, the offer
// is void.
func TestOverruledOffer(t *testing.T) {
	s := crewOf(t, 1, time.Minute, time.Second, time.Second)
	s.Began(0, 0, 0)
	if a, err := s.Next(0, 1); err != nil || !a.Second {
		t.Fatalf("%+v, %v", a, err)
	}
	s.Began(0, 2, 0)
	waits(t, s, 0, 1)
}

func TestParsePolicy(t *testing.T) {
	for _, want := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
		if got, err := queue.ParsePolicy(want.String()); err != nil || got != want {
			t.Errorf("%v: %v, %v", want, got, err)
		}
	}
	if _, err := queue.ParsePolicy("greedy"); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("greedy: %v", err)
	}
}
