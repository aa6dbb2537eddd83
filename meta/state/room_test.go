package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
)

// roomy has a dataset and two queues that are worked off, of one reader each.
func roomy(t *testing.T) *state {
	s := newState()
	do := func(c Command) {
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.apply(s); err != nil {
			t.Fatal(err)
		}
	}
	do(&Found{Cluster: Cluster{ID: "c", CA: "ca"}})
	do(&Admit{Node: Node{ID: idString(1), Host: "h", Addr: "h:1", Key: "k"}})
	do(&PutDataset{Name: "d", Registration: json.RawMessage("1"), Index: idString(1)})
	for epoch := range 2 {
		do(&OpenQueue{View: viewOf(epoch), Generation: 1, Units: 1, Policy: "flow"})
		do(&TakeUnit{View: viewOf(epoch), Reader: "w", Node: idString(1), Nonce: 1})
		do(&TakeUnit{View: viewOf(epoch), Reader: "w", Node: idString(1), Finish: true, Take: -1, Nonce: 2})
	}
	return s
}

func viewOf(epoch int) string {
	return fmt.Sprintf("d@epoch=%d,ranks=1,seed=0,order=full,step=1,tail=keep,assign=local", epoch)
}

// Bounds that take too long to reach: what is counted is set to them.
func TestDistantBounds(t *testing.T) {
	another := &PutDataset{Name: "e", Registration: json.RawMessage("1"), Index: idString(2)}
	step := &TakeUnit{View: viewOf(0), Reader: "v", Node: idString(1), Take: -1}
	tests := []struct {
		name    string
		full    func(*state)
		command Command
		want    error
	}{
		{"datasets", func(s *state) { fill(&s.datasets().table, MaxDatasets) }, another, meta.ErrBusy},
		{"datasets, one to come", func(s *state) { fill(&s.datasets().table, MaxDatasets-1) }, another, nil},
		{"removed nodes", func(s *state) { fill(&s.nodes().removed, MaxRemoved-1) }, &Admit{Node: Node{ID: idString(2)}}, meta.ErrBusy},
		{"readers, of whom some hold nothing", func(s *state) { s.queues().readers = MaxAllReaders }, step, nil},
		{"readers, all of whom hold something", func(s *state) { holding(s) }, step, meta.ErrBusy},
		{"readers, one of which leaves", func(s *state) { holding(s) }, &LeaveQueue{View: viewOf(0), Reader: "v"}, meta.ErrBusy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := roomy(t)
			tt.full(s)
			if _, err := tt.command.apply(s); !errors.Is(err, tt.want) {
				t.Fatalf("got %v", err)
			}
			if _, ok := s.queues().get(viewOf(0)); !ok {
				t.Fatal("the queue that wanted room was dropped")
			}
		})
	}
}

// holding makes readers as many as there may be, and the known ones hold something.
func holding(s *state) {
	for _, q := range s.queues().m {
		for _, w := range q.readers {
			w.Unit = 0
		}
	}
	s.queues().readers = MaxAllReaders
}

// Where all queues together have as many readers as there may be, the one that has most
// makes room: those of it that have left are forgotten, and none of a smaller queue.
func TestAllReaders(t *testing.T) {
	s := roomy(t)
	for _, c := range []Command{
		&TakeUnit{View: viewOf(1), Reader: "stays", Node: idString(1), Take: -1, Nonce: 1},
		&LeaveQueue{View: viewOf(1), Reader: "left"},
		&LeaveQueue{View: viewOf(0), Reader: "left"},
	} {
		if _, err := c.apply(s); err != nil {
			t.Fatal(err)
		}
	}
	s.queues().readers = MaxAllReaders
	if _, err := (&TakeUnit{View: viewOf(0), Reader: "new", Node: idString(1), Take: -1, Nonce: 1}).apply(s); err != nil {
		t.Fatal(err)
	}
	for epoch, want := range []string{"left new w", "stays w"} {
		if got := strings.Join(slices.Sorted(maps.Keys(s.queues().m[viewOf(epoch)].readers)), " "); got != want {
			t.Errorf("the queue of epoch %d has readers %s, want %s", epoch, got, want)
		}
	}
}

// Suspects of all queues together have a bound as well.
func TestAllSuspects(t *testing.T) {
	for spare, want := range []int{0, 1} {
		s := roomy(t)
		s.queues().suspects = MaxAllSuspects - spare
		for _, c := range []Command{
			&OpenQueue{View: viewOf(2), Generation: 1, Units: 4, Policy: "flow"},
			&TakeUnit{View: viewOf(2), Reader: "w", Node: idString(1), Nonce: 1},
			&LeaveQueue{View: viewOf(2), Reader: "w"},
		} {
			if _, err := c.apply(s); err != nil {
				t.Fatal(err)
			}
		}
		if q := s.queues().m[viewOf(2)]; len(q.suspects) != want || len(q.holders) != 0 {
			t.Errorf("%d suspects with room for %d", len(q.suspects), spare)
		}
	}
}

// fill adds keys that mean nothing until a table has so many.
func fill[V any](t *table[string, V], n int) {
	var none V
	for i := 0; t.len() < n; i++ {
		t.set(fmt.Sprint(i), none)
	}
}

// What is counted comes to nothing when all is gone.
func TestCounts(t *testing.T) {
	s := roomy(t)
	for _, c := range []Command{
		&PutDataset{Name: "e", Registration: json.RawMessage("1"), Index: idString(2)},
		&RemoveDataset{Name: "e", Generation: 2},
		&Claim{Dataset: "d", Generation: 1, Ranks: 3, Node: idString(1)},
		&Settle{View: viewOf(0), Generation: 1, Nodes: Runs{{idString(1), 1}}},
		&OpenQueue{View: viewOf(2), Generation: 1, Units: 4, Policy: "flow"},
		&TakeUnit{View: viewOf(2), Reader: "w", Node: idString(1), Nonce: 1},
		&LeaveQueue{View: viewOf(2), Reader: "w"},
		&RemoveDataset{Name: "d", Generation: 1},
	} {
		if _, err := c.apply(s); err != nil {
			t.Fatal(err)
		}
	}
	maps, q := s.plans().maps, s.queues()
	if s.datasets().registrations != 0 || s.claims().claimed != 0 || maps.runs != 0 ||
		len(maps.all) != 0 || q.units != 0 || q.readers != 0 || q.suspects != 0 {
		t.Fatalf("%d bytes, %d ranks, %+v, %+v", s.datasets().registrations, s.claims().claimed, maps, q)
	}
}
