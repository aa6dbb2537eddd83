package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/test/eventually"
)

// An answer of the leader that lacks what the command came to is as none: the command is sent once
// more.
func TestAnswersThatLackTheirResult(t *testing.T) {
	var spoiled atomic.Pointer[string] // what is answered instead of the next result
	nodes := clusterWith(t, 2, func(n *node) {
		n.spoils = func(a applied) any {
			if text := spoiled.Swap(nil); text != nil {
				return map[string]any{"index": a.Index, "result": json.RawMessage(*text)}
			}
			return a
		}
	})
	_, rest := leading(t, nodes)
	n := rest[0]
	if err := put(n, "d"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it knows the dataset", func() bool { _, ok := n.machine.Dataset("d"); return ok })
	view := func(epoch int) string {
		return fmt.Sprintf("d@epoch=%d,ranks=2,seed=0,order=full,step=4,tail=drop,assign=local", epoch)
	}
	for _, tt := range []struct {
		command state.Command
		has     func(state.Result) bool
	}{
		{&state.Settle{View: view(1), Generation: 1, Nodes: state.Runs{{Node: n.id, Count: 2}}}, func(r state.Result) bool { return r.Plan() != nil }},
		{&state.OpenQueue{View: view(2), Generation: 1, Units: 9, Policy: "flow"}, func(r state.Result) bool { return r.Queue() != nil }},
		{&state.ResetQueue{View: view(2)}, func(r state.Result) bool { return r.Queue() != nil }},
		{&state.MakeJob{Node: n.id, Name: "j", UID: 7, Nonce: 1}, func(r state.Result) bool { return r.Job() != nil }},
		{&state.MakeStage{Job: "j", Name: "s", Nonce: 2}, func(r state.Result) bool { return r.Stage() != nil }},
	} {
		for _, text := range []string{`{}`, `null`, `{"Queue":null,"Plan":null}`, `{"Queue":5,"Plan":5,"Job":5,"Stage":5}`} {
			spoiled.Store(&text)
			err := onceLed(t, func() error {
				_, err := n.group.commands.tryOnce(t.Context(), n.group.config.self(), tt.command)
				switch {
				case spoiled.Load() != nil:
					return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
				case err != nil && strings.Contains(err.Error(), "lacks what the command comes to") && errors.Is(err, meta.ErrUnavailable) && !errors.Is(err, meta.ErrCorrupt):
					return nil
				}
				return fmt.Errorf("it is taken: %v", err)
			})
			if err != nil {
				t.Errorf("%T: %s: %v", tt.command, text, err)
			}
			spoiled.Store(&text)
			if r, err := n.group.Do(t.Context(), tt.command); err != nil || !tt.has(r) || spoiled.Load() != nil {
				t.Errorf("%T: after %s: %+v, %v", tt.command, text, r, err)
			}
		}
	}
}
