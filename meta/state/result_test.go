package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A result goes to the node that asked the leader, which may be of the release before: what it
// says stays what it was, to the byte, and what is read is what was said.
func TestFormOfResults(t *testing.T) {
	c := pooled(t, "maps=2 parts=3")
	var got bytes.Buffer
	for _, command := range []state.Command{
		byLeader(operator, &state.Admit{TokenHash: index(1), Node: nodeOf(9), Speaks: state.Version}),
		signedBy(other, &state.PutDataset{Name: "e", Registration: []byte(`{}`), Index: index(2)}),
		signedBy(other, &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: other}),
		signedBy(hostile, &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Rank: 1, Node: hostile}),
		signedBy(other, &state.Settle{View: view(3, 2), Generation: 1, Nodes: state.Runs{{Node: other, Count: 2}}}),
		signedBy(other, &state.OpenQueue{View: view(1, 2), Generation: 1, Units: 10, Policy: "flow"}),
		signedBy(other, &state.TakeUnit{View: view(1, 2), Reader: "w", Node: other, Finish: true, Take: 4, Nonce: 2}),
		signedBy(other, &state.ResetQueue{View: view(1, 2)}),
		signedBy(other, &state.LeaveQueue{View: view(1, 2), Reader: "w"}),
		signedBy(other, &state.MakeJob{Node: other, Name: "k", UID: 7, Nonce: 1}),
		signedBy(other, &state.SetQuota{Name: "k", Quota: 1 << 30}),
		signedBy(other, &state.UseJob{Node: other, Name: "k", Open: true}),
		signedBy(other, &state.MakeStage{Job: "k", Name: "s", Nonce: 2}),
		signedBy(other, &state.BeginStage{StageName: stageName}),
		commitOf(0, 1, other, 5),
		batchOf(other, state.Commit{Map: 0, Attempt: 2, Sum: 5}, state.Commit{Map: 9}),
		signedBy(hostile, &state.KeepCopy{StageName: stageName, Node: hostile, Map: 0, Sum: 5, Has: true}),
		signedBy(other, &state.ResetStage{StageName: stageName}),
		signedBy(operator, &state.Setting{Key: "k", Value: "v"}),
	} {
		r, err := c.try(command)
		fmt.Fprintf(&got, "%T %s %v\n", command, text(r), err)
		var read state.Result
		if err := json.Unmarshal([]byte(text(r)), &read); err != nil || text(read) != text(r) {
			t.Errorf("%T: %s is read as %s (%v)", command, text(r), text(read), err)
		}
		if err := read.Check(command); err != nil {
			t.Errorf("%T: %s: %v", command, text(r), err)
		}
	}
	const file = "testdata/signed/results"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n%swant\n%s(%v)", got.Bytes(), want, err)
	}
}

// Of a result a section finds what is its own, whether it was sent or not, and else nothing.
func TestResultsAreOfOneSection(t *testing.T) {
	c := founded(t, 1)
	here := c.do(&state.OpenQueue{View: view(1, 2), Generation: 1, Units: 10, Policy: "flow"})
	var sent, wrong state.Result
	for text, r := range map[string]*state.Result{text(here): &sent, `{"Queue":5}`: &wrong} {
		if err := json.Unmarshal([]byte(text), r); err != nil {
			t.Fatal(err)
		}
	}
	if sent.Queue() == nil || *sent.Queue() != *here.Queue() || here.Queue().Units != 10 {
		t.Errorf("%+v is sent as %+v", here.Queue(), sent.Queue())
	}
	for name, r := range map[string]state.Result{"here": here, "sent": sent, "nothing": {}, "wrong": wrong} {
		if r.Plan() != nil || r.Maps() != nil || r.Before() != "" || (name == "nothing" || name == "wrong") && r.Queue() != nil {
			t.Errorf("%s: %s is a result of others", name, text(r))
		}
	}
}

// A result that lacks what the sender of its command reads of it is refused, whatever it has instead.
func TestResultsThatLackSomething(t *testing.T) {
	commits := &state.CommitMaps{Maps: state.MapsByStage{{Stage: 1, Maps: state.Commits{{Map: 1}, {Map: 2}}}}}
	for _, tt := range []struct {
		command state.Command
		results []string
	}{
		{&state.OpenQueue{}, []string{`{}`, `{"Queue":null}`, `{"Queue":5}`, `{"Plan":{}}`}},
		{&state.ResetQueue{}, []string{`{}`, `null`, `7`, `{"Queue":"x"}`}},
		{&state.Settle{}, []string{`{}`, `{"Plan":[]}`, `{"Queue":{}}`}},
		{&state.TakeUnit{}, []string{`{}`, `{"Step":null}`}},
		{&state.MakeJob{}, []string{`{}`, `{"Stage":{}}`}},
		{&state.MakeStage{}, []string{`{}`, `{"Job":{}}`}},
		{commits, []string{`{}`, `{"Maps":[]}`, `{"Maps":[{"Commit":{}}]}`, `{"Maps":[{"Commit":{}},{}]}`, `{"Maps":[{"Commit":{}},null]}`}},
	} {
		for _, text := range tt.results {
			var r state.Result
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(tt.command); !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("%T: %s: %v", tt.command, text, err)
			}
		}
		if err := (state.Result{}).Check(tt.command); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%T: nothing: %v", tt.command, err)
		}
	}
}
