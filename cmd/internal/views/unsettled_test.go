package views

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta"
	"rankfs/meta/state"
)

// A plan that is unsettled by a user, on whichever node, stands on none: the names of its
// views are looked up again, and a batch that is opened by one that was looked up
// before is refused. One that makes room for others stands where it is used.
func TestUnsettledPlansAreLeft(t *testing.T) {
	view := settled(t, 0)
	settle := func(epoch int) *state.Settle {
		return &state.Settle{View: settled(t, epoch).String(), Generation: 1, Nodes: state.Runs{{Node: catalogtest.Node(0).ID, Count: 2}}}
	}
	for _, tt := range []struct {
		name     string
		commands []state.Command // of others
		left     bool
	}{
		{"nothing happens", nil, false},
		{"another view is unsettled", []state.Command{&state.Unsettle{View: settle(7).View}}, false},
		{"it is unsettled", []state.Command{&state.Unsettle{View: settle(0).View}}, true},
		{"another plan is settled", []state.Command{&state.Unsettle{View: settle(0).View}, settle(0)}, true},
		{"it makes room", plansOfOthers(settle), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := catalogtest.New(t, 2)
			n := viewsOf(t, k, "ranks=2,step=2", 10, []string{"a"}, []string{"b"})
			k.Apply(settle(7), settle(0))
			var dropped []string
			n.settled.drop = func(name string) { dropped = append(dropped, name) }
			s, err := n.Open(view.String())
			if err != nil || !s.Settled() {
				t.Fatalf("settled %v, %v", err == nil && s.Settled(), err)
			}
			k.Apply(tt.commands...)
			looked := n.settled.overtaken()
			if want := map[bool][]string{true: {"d"}}[tt.left]; !slices.Equal(looked, want) || len(n.settled.overtaken()) != 0 {
				t.Errorf("looked up again are the views of %q", looked)
			}
			if err := s.holds(); errors.Is(err, meta.ErrOvertaken) != tt.left || (err != nil) != tt.left {
				t.Errorf("it is opened: %v", err)
			}
			if (len(dropped) > 0) != tt.left {
				t.Errorf("dropped are %q", dropped)
			}
		})
	}
}

// settled is a view of two ranks.
func settled(t *testing.T, epoch int) meta.View {
	t.Helper()
	v, err := meta.View{Dataset: "d"}.With(fmt.Sprintf("ranks=2,step=2,epoch=%d", epoch))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plansOfOthers are so many that older ones make room.
func plansOfOthers(settle func(epoch int) *state.Settle) (all []state.Command) {
	for i := range state.MaxPlans {
		all = append(all, settle(i+10))
	}
	return all
}

// What a node notes of plans is no more than what the cluster keeps.
func TestPinsAreForgotten(t *testing.T) {
	k := catalogtest.New(t, 1)
	noted := &settledPlans{state: k.State}
	k.Apply(&state.PutDataset{Name: "d", Registration: []byte("{}"), Index: strings.Repeat("0", 64)})
	for epoch := range 3 {
		view := settled(t, epoch).String()
		k.Apply(&state.Settle{View: view, Generation: 1, Nodes: state.Runs{{Node: catalogtest.Node(0).ID, Count: 2}}})
		p, ok := k.State.SettledPlan(view)
		if !ok {
			t.Fatal("not settled")
		}
		noted.note(p.View, p.Sequence)
	}
	k.Apply(&state.RemoveDataset{Name: "d", Generation: 1})
	noted.overtaken()
	if left := len(noted.mu.sequence); left != 0 {
		t.Errorf("%d are left", left)
	}
}
