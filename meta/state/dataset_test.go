package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

func TestDatasets(t *testing.T) {
	c := founded(t, 1)
	put := func(registration string, i int, generation uint64) *state.PutDataset {
		return &state.PutDataset{Name: "d", Registration: json.RawMessage(registration), Index: index(i), IndexBytes: 10, Generation: generation}
	}
	c.refuse(meta.ErrExist, put(`{"a":2}`, 1, 0))
	c.refuse(meta.ErrExist, put(`{"a":1}`, 2, 0))
	c.refuse(meta.ErrStale, put(`{"a":2}`, 1, 2))
	if r := c.do(put(`{"a":2}`, 1, 1)); r.Generation() != 2 {
		t.Fatalf("%+v", r)
	}
	if r := c.do(put(`{"a":2}`, 1, 1)); r.Generation() != 2 { // sent again
		t.Fatalf("%+v", r)
	}
	c.do(put(`{"a":2}`, 2, 2))
	c.refuse(meta.ErrStale, &state.RemoveDataset{Name: "d", Generation: 2})
	c.do(&state.RemoveDataset{Name: "d", Generation: 3})
	c.do(&state.RemoveDataset{Name: "d", Generation: 3})
	c.refuse(meta.ErrStale, put(`{"a":3}`, 2, 3))
	if r := c.do(put(`{"a":2}`, 2, 0)); r.Generation() != 4 {
		t.Fatalf("%+v", r)
	}
	if d, ok := c.m.Dataset("d"); !ok || d.Before != 0 || string(d.Registration) != `{"a":2}` {
		t.Fatalf("%+v", d)
	}
}

// A dataset that others are made of stays while they are there, and none is made of
// itself.
func TestDatasetsMadeOfOthers(t *testing.T) {
	c := roled(t)
	put := func(name string, generation uint64, bases ...string) state.Command {
		return signedBy(hostile, &state.PutDataset{Name: name, Registration: json.RawMessage(`{}`), Index: index(1), IndexBytes: int64(generation), Generation: generation, Bases: bases})
	}
	remove := func(name string) state.Command {
		d, _ := c.m.Dataset(name)
		return signedBy(operator, &state.RemoveDataset{Name: name, Generation: d.Generation})
	}
	c.refuse(meta.ErrNotExist, put("x", 0, "none"))
	c.do(put("e", 0, "d"))
	c.do(put("f", 0, "d", "e"))
	for name, by := range map[string]string{"d": "e, f are made of it; remove that first: rankfs dataset rm e", "e": "f is made of it; remove that first: rankfs dataset rm f"} {
		if _, err := c.try(remove(name)); !errors.Is(err, meta.ErrBusy) || !strings.HasSuffix(err.Error(), by) {
			t.Errorf("removal of %s: %v, want advice to do %s", name, err, by)
		}
	}
	d, _ := c.m.Dataset("d")
	c.refuse(meta.ErrInvalid, put("d", d.Generation, "f"))
	for _, odd := range [][]string{{"d"}, {"e", "d"}, {"e", "e"}, {"a/b"}, {""}, strings.Split(strings.Repeat("e,", 17), ",")[:17]} {
		if _, err := state.Encode(put("d", d.Generation, odd...)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("made of %q: %v", odd, err)
		}
	}
	if _, err := state.Encode(&state.PutDataset{Name: "x", Registration: json.RawMessage(`{}`), Index: index(1), Bases: []string{"d"}}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a command of the release before says what a dataset is made of: %v", err)
	}
	// The base may change; what is made of it has to be made anew.
	c.do(put("d", d.Generation))
	again, err := state.Read(bytes.NewReader(written(t, snapshot(t, c.m))))
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := again.Dataset("f"); !slices.Equal(f.Bases, []string{"d", "e"}) {
		t.Errorf("out of a snapshot comes %+v", f)
	}
	for _, name := range []string{"f", "e", "d"} {
		c.do(remove(name))
	}
}

// What a dataset is made of in the shuffle pool stays while it is there, used or not, and
// cannot be removed; to begin the stage anew is no removal. A dataset of what has changed
// since it was read is none.
func TestDatasetsMadeOfStages(t *testing.T) {
	c := pooled(t, "maps=1 ttl=1h")
	put := func(name string, before, generation uint64) state.Command {
		return signedBy(hostile, &state.PutDataset{
			Name: name, Registration: json.RawMessage(`{}`), Index: index(int(generation) + 1), Generation: before, Stage: stageNumber, StageGeneration: generation,
		})
	}
	c.refuse(meta.ErrStale, put("x", 0, 0)) // it is not sealed
	c.won(commitOf(0, 0, other, 5))
	c.refuse(meta.ErrStale, put("x", 0, 1))
	c.do(put("x", 0, 0))
	x, _ := c.m.Dataset("x")
	if _, err := state.Encode(&state.PutDataset{Name: "y", Registration: json.RawMessage(`{}`), Index: index(1), Stage: stageNumber}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a command of the release before says of which stage a dataset is made: %v", err)
	}
	c.m = through(t, c.m)

	j, _ := c.m.PoolJob("j")
	if _, ends := j.End(); ends || !slices.Equal(j.Datasets, []string{"x"}) || !slices.Equal(c.m.PoolJobs()[0].Datasets, j.Datasets) {
		t.Errorf("the job ends, or is not what x is made of: %+v", j)
	}
	for what, k := range map[string]state.Command{
		"job j of the shuffle pool": &state.DropJob{Name: "j", Number: j.Number},
		"stage s of job j":          &state.DropStage{StageName: stageName},
		"map 0 of stage s of job j": &state.DropMap{StageName: stageName, Map: 0, Sum: 5},
	} {
		want := what + " is in use: x is made of it; remove that first: rankfs dataset rm x"
		if _, err := c.try(signedBy(other, k)); !errors.Is(err, meta.ErrBusy) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	unused := func() {
		j, _ := c.m.PoolJob("j")
		c.do(signedBy(other, &state.DropJob{Name: "j", Number: j.Number, Unused: true, Used: j.Used}))
	}
	unused()
	if is, ok := c.m.PoolJob("j"); !ok || len(c.maps(stageNumber)) != 1 || len(c.maps(stageNumber)[0].Nodes) != 1 {
		t.Fatalf("the job is %+v, its maps are %+v", is, c.maps(stageNumber))
	}

	c.do(signedBy(other, &state.ResetStage{StageName: stageName}))
	c.refuse(meta.ErrStale, put("x", x.Generation, 1))
	again := commitOf(0, 0, other, 6)
	again.Maps[0].Generation = 1
	c.won(again)
	c.do(put("x", x.Generation, 1))
	x, _ = c.m.Dataset("x")
	c.now += 1e12
	c.do(signedBy(operator, &state.RemoveDataset{Name: "x", Generation: x.Generation}))
	if is, _ := c.m.PoolJob("j"); is.Used <= j.Used+1e12 || len(is.Datasets) > 0 {
		t.Errorf("once the dataset is gone the job has been unused since %d: %+v", j.Used, is)
	}
	unused()
	if _, ok := c.m.PoolJob("j"); ok {
		t.Error("the job stays when nothing is made of it")
	}
	c.refuse(meta.ErrStale, put("x", 0, 1))
}

// A new generation takes along all that was said of the one before.
func TestNewGeneration(t *testing.T) {
	c := founded(t, 1)
	c.do(&state.PutDataset{Name: "e", Registration: json.RawMessage("1"), Index: index(1)})
	other := strings.Replace(view(1, 2), "d@", "e@", 1)
	nodes := state.Runs{{Node: id(1), Count: 2}}
	for v, g := range map[string]uint64{view(1, 2): 1, other: 2} {
		c.do(&state.Claim{Dataset: v[:1], Generation: g, Ranks: 2, Node: id(1)})
		c.do(&state.Settle{View: v, Generation: g, Nodes: nodes})
		c.do(&state.OpenQueue{View: v, Generation: g, Units: 1, Policy: "flow"})
	}
	if r := c.do(&state.PutDataset{Name: "d", Registration: json.RawMessage("2"), Index: index(1), Generation: 1}); r.Generation() != 3 {
		t.Fatalf("%+v", r)
	}
	_, plan := c.m.SettledPlan(view(1, 2))
	_, queue := c.m.Queue(view(1, 2))
	if plan || queue || c.m.Claims("d", 2) != nil {
		t.Fatal("something of the old generation is left")
	}
	if s := c.m.Sizes(); s.Plans != 1 || s.Queues != 1 || s.RankCounts != 1 {
		t.Fatalf("what is of another dataset: %+v", s)
	}
	c.refuse(meta.ErrStale, &state.Settle{View: view(1, 2), Generation: 1, Nodes: nodes})
	c.refuse(meta.ErrStale, &state.Claim{Dataset: "d", Generation: 1, Ranks: 2, Node: id(1)})
	c.refuse(meta.ErrStale, &state.OpenQueue{View: view(1, 2), Generation: 1, Units: 1, Policy: "flow"})
	c.refuse(meta.ErrNotExist, &state.TakeUnit{View: view(1, 2), Reader: "w", Node: id(1), Take: 0})
}
