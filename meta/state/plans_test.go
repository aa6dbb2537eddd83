package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"rankfs/meta/state"
)

func TestPlans(t *testing.T) {
	c := founded(t, 1)
	if got := c.m.SettledPlans(); len(got) != 0 {
		t.Fatalf("plans before any was settled: %v", got)
	}
	settle := func(epoch int) {
		c.do(&state.Settle{View: view(epoch, 2), Generation: 1, Nodes: state.Runs{{Node: id(1), Count: 2}}})
	}
	for _, epoch := range []int{2, 1, 3, 2} { // the second time it is settled already
		settle(epoch)
	}
	before, _ := c.m.SettledPlan(view(1, 2))
	overtaken := func(want bool) {
		t.Helper()
		if got := c.m.Overtaken(view(1, 2), before.Sequence); got != want {
			t.Errorf("overtaken: %v", got)
		}
	}
	overtaken(false)
	c.do(&state.Unsettle{View: view(1, 2)})
	overtaken(true)
	settle(1)
	overtaken(true)
	var got []string
	for _, p := range c.m.SettledPlans() {
		if one, ok := c.m.SettledPlan(p.View); !ok || fmt.Sprint(one) != fmt.Sprint(p) {
			t.Errorf("plan %v, by its view %v", p, one)
		}
		got = append(got, p.View)
	}
	if want := []string{view(2, 2), view(3, 2), view(1, 2)}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClaims(t *testing.T) {
	c := founded(t, 3)
	claim := func(n int) string {
		return c.do(&state.Claim{Dataset: "d", Generation: 1, Ranks: 4, Rank: 2, Node: id(n)}).Before()
	}
	if c.m.Claims("d", 4) != nil {
		t.Fatal("claims before any was made")
	}
	for i, want := range []struct {
		node   int
		before string
	}{{1, ""}, {1, ""}, {2, id(1)}, {2, id(1)}, {1, id(2)}, {3, id(1)}} {
		if got := claim(want.node); got != want.before {
			t.Fatalf("claim %d: %q held it before, not %q", i, got, want.before)
		}
	}
	want := state.Runs{{Count: 2}, {Node: id(3), Count: 1}, {Count: 1}}
	got := c.m.Claims("d", 4)
	if !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	sent, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var received state.Runs
	if err := json.Unmarshal(sent, &received); err != nil || !slices.Equal(received, want) {
		t.Fatalf("%s was received as %v, %v", sent, received, err)
	}
}
