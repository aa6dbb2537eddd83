package report

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

func TestNumbers(t *testing.T) {
	many := []uint64{}
	for i := range uint64(20) {
		many = append(many, 2*i)
	}
	for want, numbers := range map[string][]uint64{
		"":                                      nil,
		"0":                                     {0},
		"0-1, 3":                                {0, 1, 3},
		"7-9, 11-12":                            {7, 8, 9, 11, 12},
		"0, 2, 4, 6, 8, 10, 12, 14 and 12 more": many,
	} {
		if got := numbersOf(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

func TestWeights(t *testing.T) {
	few, many := []int64{3, 0, 12}, make([]int64, 100)
	for i := range many {
		many[i] = int64(1000 + i)
	}
	many[7], many[50] = 5, 1<<40
	for want, parts := range map[string][]int64{
		"000000 3, 000001 0, 000002 12": few,
		"the largest 000050 1099511627776, 000099 1099; the middle one 1049; the smallest 000007 5": many,
	} {
		if got := weights(parts); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Copies are missing where too few are on nodes that are up and not drained; a map is away,
// not lost, while a node that is down has it, and neither on one that is drained.
func TestTally(t *testing.T) {
	up, active := map[string]bool{"a": true, "b": true, "d": true}, map[string]bool{"a": true, "b": true}
	commits := state.MapsOf([]state.Commit{
		{Map: 0, Nodes: []string{"a", "b"}},
		{Map: 1, Nodes: []string{"a"}},
		{Map: 3, Nodes: []string{"b", "c", "a"}},
		{Map: 4, Nodes: []string{"c"}},
		{Map: 6},
		{Map: 7, Nodes: []string{"d", "a"}},
		{Map: 8, Nodes: []string{"d"}},
	}...)
	got := TallyOf(2, commits, up, active)
	if got.Missing != 1+2+2+1+2 || !slices.Equal(got.Away, []uint64{4}) || !slices.Equal(got.Lost, []uint64{6}) {
		t.Errorf("%+v", got)
	}
	for maps, want := range map[uint64][]uint64{7: {2, 5}, 11: {2, 5, 9, 10}, 0: nil} {
		if got := NotCommitted(maps, commits); !slices.Equal(got, want) {
			t.Errorf("of %d maps %v are open, want %v", maps, got, want)
		}
	}
}

// The text of a stage says what to do next.
func TestReport(t *testing.T) {
	spec, err := meta.ParseStage("maps=4 parts=2")
	if err != nil {
		t.Fatal(err)
	}
	unbounded := spec
	unbounded.Maps = 0
	now := time.Now()
	job := state.PoolJob{Name: "j", Used: now.UnixNano(), Life: int64(time.Hour)}
	busy := job
	busy.Held, busy.Users = true, map[string]int64{"a": 1, "b": 2}
	for name, row := range map[string]struct {
		r    Report
		want []string
	}{
		"new":           {Report{Job: job, Stage: state.PoolStage{Name: "s"}}, []string{"open: no spec yet; write one", "goes       in 1h, unless"}},
		"open":          {Report{Job: job, Stage: state.PoolStage{Name: "s", Spec: spec, Maps: 2}, Open: []uint64{1, 3}}, []string{"2 of 4 maps are committed; not yet 1, 3\n"}},
		"without maps=": {Report{Job: job, Stage: state.PoolStage{Name: "s", Spec: unbounded, Maps: 2}}, []string{"committed so far: 2 maps; when it is all, say so: rankfs shuffle seal j/s\n"}},
		"sealed":        {Report{Job: busy, Hosts: map[string]string{"a": "node1"}, Stage: state.PoolStage{Name: "s", Spec: spec, Sealed: true, Generation: 3, Resets: 2}}, []string{"state      sealed\n", "resets     2\n", "goes       10m after its last use; it is in use on b, node1\n"}},
		"lost": {
			Report{Job: job, Stage: state.PoolStage{Name: "s", Spec: spec, Sealed: true}, Tally: Tally{Missing: 2, Lost: []uint64{3}, Away: []uint64{1}}, Names: map[uint64]string{3: "map-000003"}},
			[]string{"lost: no copy is left of 1 map; ", "rankfs shuffle reset j/s\n", "missing    2 copies\n", "away       maps 1: ", "lost       map-000003\n"},
		},
	} {
		for _, want := range row.want {
			if text := row.r.String(); !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// Of each stage the last refusal is kept, in bounded words, as long as the stage is there.
func TestRefusals(t *testing.T) {
	var r Refusals
	r.Note(7, "write spec", errors.New("first"))
	r.Note(7, "commit .map-000000.0", errors.New(strings.Repeat("x\n", 1000)))
	r.Note(8, "write spec", errors.Join(errors.New("one"), errors.New("and  other")))
	if text := r.Of(8).String(); !strings.HasSuffix(text, ": one; and  other") {
		t.Errorf("%q", text)
	}
	if text := r.Of(7).String(); !strings.HasPrefix(text, "commit .map-000000.0 at ") || strings.Contains(text, "\n") || len(text) > maxReason+100 {
		t.Errorf("%q", text)
	}
	r.Keep(map[uint64]bool{8: true})
	if r.Of(7) != nil || r.Of(8) == nil || r.Of(9) != nil {
		t.Error("what is kept is not what is there")
	}
}
