package state_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
	"rankfs/meta/state"
)

var stageName = state.StageName{Job: "j", Name: "s"}

// stageNumber is that of the first stage of pooled.
const stageNumber = 3

// pooled is a cluster with the job j of user 7, its stage s, and a spec.
func pooled(t testing.TB, spec string) *cluster {
	c := roled(t)
	c.do(signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 7, Nonce: 1}))
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: "s", Nonce: 2}))
	c.do(signedBy(other, &state.SpecifyStage{StageName: stageName, Spec: spec}))
	return c
}

func commitOf(number, attempt uint64, node string, sum uint64) *state.CommitMaps {
	return batchOf(node, state.Commit{Map: number, Attempt: attempt, Sum: sum})
}

// batchOf commits attempts of one node, which has their only copies.
func batchOf(node string, maps ...state.Commit) *state.CommitMaps {
	g := state.StageMaps{Stage: stageNumber}
	for _, one := range maps {
		one.Writer, one.Size, one.Nodes = node, 10, []string{node}
		g.Maps = append(g.Maps, one)
	}
	c := &state.CommitMaps{Maps: state.MapsByStage{g}}
	signedBy(node, c)
	return c
}

// commit is the attempt that has won the map of a command of one.
func (c *cluster) commit(k *state.CommitMaps) (state.Commit, error) {
	r, err := c.try(k)
	switch {
	case err != nil:
		return state.Commit{}, err
	case r.Maps()[0].Error != nil:
		return state.Commit{}, r.Maps()[0].Error
	}
	return *r.Maps()[0].Commit, nil
}

// won is the attempt that has won, if the command does not fail.
func (c *cluster) won(k *state.CommitMaps) state.Commit {
	c.t.Helper()
	won, err := c.commit(k)
	if err != nil {
		c.t.Fatalf("%+v: %v", k, err)
	}
	return won
}

func (c *cluster) refuseCommit(want error, k *state.CommitMaps) {
	c.t.Helper()
	if won, err := c.commit(k); !errors.Is(err, want) {
		c.t.Fatalf("%+v: %+v, %v; want %v", k, won, err, want)
	}
}

func (c *cluster) stage() state.PoolStage {
	j, _ := c.m.PoolJob("j")
	g, ok := c.m.Stage(j.Number, "s")
	if !ok {
		c.t.Fatal("no stage")
	}
	return g
}

// maps are the commits of a stage.
func (c *cluster) maps(stage uint64) (all []state.Commit) {
	for _, one := range c.m.Commits(stage).All() {
		all = append(all, one)
	}
	return all
}

// The first attempt of a map wins, whatever comes later or again; the last map that
// the spec has seals the stage.
func TestFirstAttemptWins(t *testing.T) {
	c := pooled(t, "maps=2 parts=3 copies=1")
	for _, k := range []*state.CommitMaps{commitOf(0, 0, other, 5), commitOf(0, 0, other, 5), commitOf(0, 1, hostile, 6)} {
		if got := c.won(k); got.Writer != other || got.Sum != 5 {
			t.Errorf("the winner is %+v", got)
		}
	}
	if g := c.stage(); g.Sealed || g.Maps != 1 || g.Bytes != 10 {
		t.Errorf("after one map: %+v", g)
	}
	c.refuseCommit(meta.ErrInvalid, commitOf(2, 0, other, 5))
	c.refuse(meta.ErrBusy, signedBy(other, &state.SealStage{StageName: stageName}))
	c.won(commitOf(1, 3, hostile, 9))
	if g := c.stage(); !g.Sealed || g.Maps != 2 {
		t.Errorf("after all maps: %+v", g)
	}
	c.won(commitOf(1, 4, other, 8)) // too late is no error
	if got, _ := c.m.Commit(c.stage().Number, 1); got.Attempt != 3 {
		t.Errorf("map 1 is %+v", got)
	}
}

// What a node has for the pool it says itself once it has entered: what its admission says does
// not count. A snapshot has it.
func TestOffers(t *testing.T) {
	c := roled(t)
	has := func(bytes int64, full bool) {
		t.Helper()
		c.m = through(t, c.m)
		if n, _ := c.m.Node(other); n.Pool != bytes || n.PoolFull != full {
			t.Errorf("%+v, want %d bytes, full: %v", n, bytes, full)
		}
	}
	has(0, false)
	c.do(signedBy(other, &state.OfferPool{ID: other, Bytes: 7, Full: true}))
	has(7, true)
	c.do(signedBy(other, &state.OfferPool{ID: other}))
	has(0, false)
	c.do(signedBy(operator, &state.Token{Hash: index(2), Expires: 1 << 62, Uses: 1, Role: state.Member}))
	n := nodeOf(5)
	n.Pool = 9
	c.do(byLeader(operator, &state.Admit{TokenHash: index(2), Node: n, Speaks: state.Version}))
	if got, ok := c.m.Node(id(5)); !ok || got.Pool != 0 {
		t.Errorf("a node that has entered: %+v", got)
	}
}

// Each map of a batch has a result of its own: what is wrong with one is no matter to
// the others. What is wrong with all is said once, and nothing has happened.
func TestBatches(t *testing.T) {
	c := pooled(t, "maps=4 parts=3")
	c.won(commitOf(1, 7, hostile, 5))
	k := batchOf(other, state.Commit{Map: 0, Sum: 1}, state.Commit{Map: 1, Sum: 2}, state.Commit{Map: 3, Attempt: 1<<32 - 1, Sum: 3}, state.Commit{Map: 9})
	for range 2 { // again: the same
		r := c.do(k).Maps()
		if r[0].Commit.Writer != other || r[1].Commit.Attempt != 7 || r[2].Commit.Sum != 3 || !errors.Is(r[3].Error, meta.ErrInvalid) {
			t.Errorf("%s", text(r))
		}
	}
	if g := c.stage(); g.Maps != 3 || g.Sealed {
		t.Errorf("%+v", g)
	}
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: "t", Nonce: 3}))
	c.do(signedBy(other, &state.SpecifyStage{StageName: state.StageName{Job: "j", Name: "t"}, Spec: "maps=1"}))
	several := batchOf(other, state.Commit{Map: 1})
	for _, number := range []uint64{stageNumber + 1, 99} {
		more := batchOf(other, state.Commit{Map: 0, Sum: 4}).Maps[0]
		more.Stage = number
		several.Maps = append(several.Maps, more)
	}
	if r := c.do(several).Maps(); r[0].Commit.Attempt != 7 || r[1].Commit.Sum != 4 || !errors.Is(r[2].Error, meta.ErrNotExist) {
		t.Errorf("of several stages: %s", text(r))
	}
	got := c.maps(c.stage().Number)
	c.m = through(t, c.m)
	if is := c.maps(c.stage().Number); len(is) != 3 || !reflect.DeepEqual(got, is) {
		t.Errorf("%+v, and after a snapshot %+v", got, is)
	}
	before := fmt.Sprint(c.stage(), got)
	k = batchOf(other, state.Commit{Map: 2})
	k.Maps[0].Generation = 1
	c.refuseCommit(meta.ErrOvertaken, k)
	two := batchOf(other, state.Commit{Map: 2}, state.Commit{Map: 3})
	two.Maps[0].Maps[1].Writer = hostile
	many := batchOf(other, make([]state.Commit, state.MaxCommitMaps+1)...)
	for i := range many.Maps[0].Maps {
		many.Maps[0].Maps[i].Map = uint64(i)
	}
	again := batchOf(other, state.Commit{Map: 2})
	again.Maps = append(again.Maps, batchOf(other, state.Commit{Map: 3}).Maps...)
	for name, k := range map[string]*state.CommitMaps{
		"of two writers":        two,
		"of no map":             batchOf(other),
		"of no stage":           {},
		"of a stage twice":      again,
		"of a map twice":        batchOf(other, state.Commit{Map: 2}, state.Commit{Map: 2}),
		"of maps out of order":  batchOf(other, state.Commit{Map: 2}, state.Commit{Map: 0}),
		"of more than there is": many,
	} {
		if _, err := c.try(k); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("a batch %s: %v", name, err)
		}
	}
	if fmt.Sprint(c.stage(), c.maps(c.stage().Number)) != before {
		t.Error("what was refused has changed something")
	}
}

// A map takes little room, in the log and in a snapshot.
func TestRoomOfMaps(t *testing.T) {
	c := pooled(t, fmt.Sprintf("maps=%d parts=3", meta.MaxMaps))
	none := len(written(t, snapshot(t, c.m)))
	logged := 0
	for from := uint64(0); from < 1<<14; from += 64 {
		k := batchOf(other)
		maps := &k.Maps[0].Maps
		for number := from; number < from+64; number++ {
			*maps = append(*maps, state.Commit{Map: number, Size: 64 << 20, Sum: number * 0x9e3779b97f4a7c15, Writer: other, Nodes: []string{other, hostile}})
		}
		state.Stamp(k, 1<<60)
		data, err := state.Encode(k)
		if err != nil {
			t.Fatal(err)
		}
		logged += len(data)
		c.do(k)
	}
	saved := len(written(t, snapshot(t, c.m))) - none
	t.Logf("of %d maps: %.1f bytes each in the log, %.1f in a snapshot", 1<<14, float64(logged)/(1<<14), float64(saved)/(1<<14))
	if logged > 32<<14 || saved > 32<<14 {
		t.Errorf("%d bytes in the log, and %d in a snapshot", logged, saved)
	}
}

// A spec may be changed until attempts are written, or a map is committed, and written again
// ever after. A stage that is begun anew may have another one.
func TestSpecs(t *testing.T) {
	c := pooled(t, "maps=2")
	spec := func(text string) state.Command {
		return signedBy(other, &state.SpecifyStage{StageName: stageName, Spec: text})
	}
	c.do(spec("maps=3 parts=2"))
	c.refuse(meta.ErrInvalid, spec("maps=3 parts=zwei"))
	k := commitOf(0, 0, other, 1)
	k.Maps[0].Generation = c.stage().Generation
	c.won(k)
	c.do(spec(" parts=2\nmaps=3\n"))
	c.refuse(meta.ErrBusy, spec("maps=4 parts=2"))
	c.do(signedBy(other, &state.ResetStage{StageName: stageName, Generation: c.stage().Generation}))
	c.do(spec("maps=4 parts=2"))
	c.do(signedBy(other, &state.BeginStage{StageName: stageName}))
	c.do(signedBy(other, &state.BeginStage{StageName: stageName})) // the same again
	c.m = through(t, c.m)
	c.do(spec("maps=4 parts=2"))
	c.refuse(meta.ErrBusy, spec("maps=5 parts=2"))
	c.do(signedBy(other, &state.ResetStage{StageName: stageName, Generation: c.stage().Generation}))
	c.do(spec("maps=5 parts=2"))
	c.do(spec("record=line sep=,")) // of a release that took this, though the key is no field
	c.m = through(t, c.m)
	if got := c.stage().Spec.String(); !strings.Contains(got, "sep=,") {
		t.Errorf("the spec is %s", got)
	}
}

// What was sealed by one spec is not committed by another; the same spec again is no other.
func TestCommitsByAnotherSpec(t *testing.T) {
	c := pooled(t, "maps=2 parts=2")
	spec := func(text string) {
		c.do(signedBy(other, &state.SpecifyStage{StageName: stageName, Spec: text}))
	}
	spec("maps=2 parts=3")
	spec("parts=3 maps=2")
	c.refuseCommit(meta.ErrOvertaken, commitOf(0, 0, other, 1))
	k := commitOf(0, 0, other, 1)
	k.Maps[0].Generation = c.stage().Generation
	c.won(k)
	if g := c.stage(); g.Generation != 1 || g.Resets != 0 {
		t.Errorf("%+v", g)
	}
}

// Without maps= a person seals the stage; then no map comes any more.
func TestSealedByAPerson(t *testing.T) {
	c := pooled(t, "parts=2")
	c.won(commitOf(7, 0, other, 1))
	c.do(signedBy(other, &state.SealStage{StageName: stageName}))
	c.refuseCommit(meta.ErrBusy, commitOf(8, 0, other, 1))
	if got := c.won(commitOf(7, 1, hostile, 2)); got.Sum != 1 {
		t.Errorf("the winner is %+v", got)
	}
}

// A copy is spare when as many others as are wanted are on nodes that are up and stay.
func TestSpareCopies(t *testing.T) {
	c := pooled(t, "maps=1 copies=1")
	c.won(commitOf(0, 0, other, 5))
	keep := func(node string, has bool) *state.KeepCopy {
		return &state.KeepCopy{StageName: stageName, Node: node, Sum: 5, Has: has, Spare: !has}
	}
	c.refuse(meta.ErrOvertaken, signedBy(other, keep(other, false)))
	c.do(signedBy(hostile, keep(hostile, true)))
	n, _ := c.m.Node(other)
	c.do(byLeader(leader, &state.Health{ID: other, Life: n.Life}))
	c.refuse(meta.ErrOvertaken, signedBy(hostile, keep(hostile, false)))
	c.do(byLeader(leader, &state.Health{ID: other, Life: n.Life, Up: true}))
	c.do(signedBy(operator, &state.Drain{ID: other, Drained: true}))
	c.refuse(meta.ErrOvertaken, signedBy(hostile, keep(hostile, false)))
	c.do(signedBy(operator, &state.Drain{ID: other}))
	c.do(signedBy(hostile, keep(hostile, false)))
	c.refuse(meta.ErrOvertaken, signedBy(other, keep(other, false)))
	if got, _ := c.m.Commit(c.stage().Number, 0); !slices.Equal(got.Nodes, []string{other}) {
		t.Errorf("copies are on %v", got.Nodes)
	}
}

// A map that is lost is healed by equal bytes and by no others; a reset begins anew,
// and what was meant for the generation before comes too late.
func TestLostMaps(t *testing.T) {
	c := pooled(t, "maps=1")
	c.won(commitOf(0, 0, other, 5))
	keep := func(node string, sum uint64, has bool) state.Command {
		return signedBy(node, &state.KeepCopy{StageName: stageName, Node: node, Sum: sum, Has: has})
	}
	c.do(keep(hostile, 5, true))
	c.refuse(meta.ErrOvertaken, keep(leader, 6, true))
	c.do(keep(other, 5, false))
	if got := c.won(commitOf(0, 1, leader, 6)); got.Sum != 5 {
		t.Errorf("with a copy left the winner is %+v", got)
	}
	c.do(signedBy(operator, &state.Remove{ID: hostile}))
	if got, _ := c.m.Commit(c.stage().Number, 0); len(got.Nodes) != 0 {
		t.Errorf("copies on a node that was removed: %+v", got)
	}
	c.refuseCommit(meta.ErrUnequal, commitOf(0, 1, leader, 6))
	if got := c.won(commitOf(0, 2, leader, 5)); !slices.Equal(got.Nodes, []string{leader}) {
		t.Errorf("healed: %+v", got)
	}
	c.do(signedBy(other, &state.ResetStage{StageName: stageName}))
	c.do(signedBy(other, &state.ResetStage{StageName: stageName})) // the same again
	if g := c.stage(); g.Generation != 1 || g.Resets != 1 || g.Sealed || g.Maps != 0 {
		t.Errorf("after a reset: %+v", g)
	}
	c.refuseCommit(meta.ErrOvertaken, commitOf(0, 0, other, 5))
}
