package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A plan that somebody unpins, on whichever node, stands on none: the names of its
// views are looked up again, and a batch that is opened by one that was looked up
// before is refused. One that makes room for others stands where it is used.
func TestUnpinnedPlansAreLeft(t *testing.T) {
	view := pinned(t, 0)
	pin := func(epoch int) *state.Pin {
		return &state.Pin{View: pinned(t, epoch).String(), Generation: 1, Nodes: state.Runs{{Node: made(0).ID, Count: 2}}}
	}
	for _, tt := range []struct {
		name     string
		commands []state.Command // of others
		left     bool
	}{
		{"nothing happens", nil, false},
		{"another view is unpinned", []state.Command{&state.Unpin{View: pin(7).View}}, false},
		{"it is unpinned", []state.Command{&state.Unpin{View: pin(0).View}}, true},
		{"another plan is pinned", []state.Command{&state.Unpin{View: pin(0).View}, pin(0)}, true},
		{"it makes room", pinsOfOthers(pin), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := memberOf(t, 2)
			n := planner(t, m, "ranks=2,step=2", 10, []string{"a"}, []string{"b"})
			apply(t, m, pin(7), pin(0))
			var dropped []string
			n.drop = func(name string) { dropped = append(dropped, name) }
			s := &settling{node: n, key: view.String(), asked: view}
			if p, ok := m.machine.Plan(s.key); ok {
				s.pinned(p)
			}
			apply(t, m, tt.commands...)
			looked := m.pins.overtaken(m.machine)
			if want := map[bool][]string{true: {"d"}}[tt.left]; !slices.Equal(looked, want) || len(m.pins.overtaken(m.machine)) != 0 {
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

// pinned is a view of two ranks.
func pinned(t *testing.T, epoch int) meta.View {
	t.Helper()
	v, err := meta.View{Dataset: "d"}.With(fmt.Sprintf("ranks=2,step=2,epoch=%d", epoch))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pinsOfOthers are so many that older ones make room.
func pinsOfOthers(pin func(epoch int) *state.Pin) (all []state.Command) {
	for i := range state.MaxPlans {
		all = append(all, pin(i+10))
	}
	return all
}

// What a node notes of plans is no more than what the cluster keeps.
func TestPinsAreForgotten(t *testing.T) {
	m := memberOf(t, 1)
	apply(t, m, &state.PutDataset{Name: "d", Record: []byte("{}"), Index: strings.Repeat("0", 64)})
	for epoch := range 3 {
		view := pinned(t, epoch).String()
		apply(t, m, &state.Pin{View: view, Generation: 1, Nodes: state.Runs{{Node: made(0).ID, Count: 2}}})
		p, ok := m.machine.Plan(view)
		if !ok {
			t.Fatal("not pinned")
		}
		m.pins.note(p.View, p.Sequence)
	}
	apply(t, m, &state.RemoveDataset{Name: "d", Generation: 1})
	m.pins.overtaken(m.machine)
	if left := len(m.pins.mu.sequence); left != 0 {
		t.Errorf("%d are left", left)
	}
}
