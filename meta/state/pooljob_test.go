package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
)

// A job goes when a node says that it was not used since a certain use, and stays when
// it was, whatever clocks say; also in a snapshot.
func TestJobsEnd(t *testing.T) {
	c := pooled(t, "maps=1 ttl=2h")
	is := func() state.PoolJob {
		j, ok := c.m.PoolJob("j")
		if !ok {
			t.Fatal("the job has gone")
		}
		return j
	}
	use := func(open, hold bool) {
		c.do(signedBy(other, &state.UseJob{Node: other, Name: "j", Open: open, Hold: hold}))
	}
	unused := func(since state.PoolJob) {
		c.do(signedBy(hostile, &state.DropJob{Name: "j", Number: since.Number, Unused: true, Used: since.Used}))
	}
	before := is()
	if before.Lives() != 2*time.Hour {
		t.Errorf("it lives for %v", before.Lives())
	}
	use(true, true)
	unused(before)
	c.now -= int64(time.Hour) // another leads, whose clock is behind
	use(false, false)
	unused(before)
	c.m = through(t, c.m)
	last := is()
	if last.Lives() != state.Grace {
		t.Errorf("held once, it lives for %v", last.Lives())
	}
	c.now += int64(10 * 365 * 24 * time.Hour)
	c.do(signedBy(operator, &state.Setting{Key: "k", Value: "v"}))
	is()
	unused(last)
	unused(last)
	if _, ok := c.m.PoolJob("j"); ok {
		t.Error("a job that is not used stays")
	}
}

// Of a job that went nothing is left, and what was meant for it does not reach the one
// that has its name.
func TestJobsOfOneName(t *testing.T) {
	c := pooled(t, "maps=1")
	c.won(commitOf(0, 0, other, 5))
	was, _ := c.m.PoolJob("j")
	c.refuse(meta.ErrExist, signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 8, Nonce: 9}))
	c.do(signedBy(other, &state.DropJob{Name: "j", Number: was.Number}))
	c.do(signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 8, Nonce: 9}))
	c.do(signedBy(other, &state.DropJob{Name: "j", Number: was.Number})) // late
	is, ok := c.m.PoolJob("j")
	if !ok || is.UID != 8 || len(c.m.Stages(is.Number)) != 0 || c.m.Commits(was.Number).Len() != 0 {
		t.Errorf("%+v, %v", is, c.m.Stages(is.Number))
	}
	c.refuse(meta.ErrNotExist, signedBy(other, &state.UseJob{Node: other, Name: "j", Number: was.Number, Open: true}))
	c.refuseCommit(meta.ErrNotExist, commitOf(0, 0, other, 5))
}

// A job or a stage that a node has found empty stays if something has come into it since: a map,
// a stage, a blob or a directory of blobs. What was removed, or lost, does not count.
func TestOnlyWhatIsEmpty(t *testing.T) {
	c := pooled(t, "maps=1")
	stage := func() state.Command { return signedBy(other, &state.DropStage{StageName: stageName, Empty: true}) }
	job := func() state.Command { return signedBy(other, &state.DropJob{Name: "j", Empty: true}) }
	c.won(commitOf(0, 0, other, 5))
	c.refuse(meta.ErrExist, stage())
	c.refuse(meta.ErrExist, job())
	c.do(signedBy(other, &state.DropMap{StageName: stageName, Sum: 5}))
	c.do(stage())
	c.do(stage()) // it is not there
	j, _ := c.m.PoolJob("j")
	if _, ok := c.m.Stage(j.Number, "s"); ok {
		t.Error("an empty stage stays")
	}
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 4}))
	dir := state.Blob{Name: "d", Number: 4, Dir: true}
	c.do(signedBy(other, &state.PutBlobs{StageName: blobs, Node: other, Dirs: []state.Blob{dir}}))
	c.refuse(meta.ErrExist, signedBy(other, &state.DropStage{StageName: blobs, Empty: true}))
	c.refuse(meta.ErrExist, job())
	c.do(signedBy(other, &state.DropBlob{StageName: blobs, Blob: dir}))
	c.do(job())
	if _, ok := c.m.PoolJob("j"); ok {
		t.Error("an empty job stays")
	}
}

// A job lives as long as the spec of one of its stages says, whichever was written last.
func TestLifeOfAJob(t *testing.T) {
	c := pooled(t, "maps=1 ttl=1h")
	lives := func(want time.Duration) {
		t.Helper()
		c.m = through(t, c.m)
		if j, _ := c.m.PoolJob("j"); j.Lives() != want {
			t.Errorf("it lives %v, want %v", j.Lives(), want)
		}
	}
	lives(time.Hour)
	second := state.StageName{Job: "j", Name: "t"}
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: "t", Nonce: 3}))
	lives(time.Hour)
	c.do(signedBy(other, &state.SpecifyStage{StageName: second, Spec: "maps=1 ttl=72h"}))
	lives(72 * time.Hour)
	c.do(signedBy(other, &state.SpecifyStage{StageName: stageName, Spec: "maps=2 ttl=2h"}))
	lives(72 * time.Hour)
	c.do(signedBy(other, &state.DropStage{StageName: second}))
	lives(2 * time.Hour)
	c.do(signedBy(other, &state.DropStage{StageName: stageName}))
	lives(meta.DefaultLife)
}

// A user has so many jobs; those of others are no matter.
func TestJobsOfAUser(t *testing.T) {
	c := roled(t)
	for i := range state.MaxUserJobs {
		c.do(signedBy(other, &state.MakeJob{Node: other, Name: fmt.Sprint("j", i), UID: 7, Nonce: uint64(i)}))
	}
	more := &state.MakeJob{Node: other, Name: "more", UID: 7, Nonce: 99}
	c.refuse(meta.ErrQuota, signedBy(other, more))
	c.do(signedBy(other, &state.MakeJob{Node: other, Name: "theirs", UID: 8, Nonce: 99}))
	c.do(signedBy(other, &state.DropJob{Name: "j3"}))
	c.m = through(t, c.m)
	c.do(signedBy(other, more))
	c.refuse(meta.ErrQuota, signedBy(other, &state.MakeJob{Node: other, Name: "again", UID: 7, Nonce: 100}))
}

// A job has no more than its quota, all copies of all its maps counted: what is removed, or
// lost, is none of it any more.
func TestQuotaOfAJob(t *testing.T) {
	c := roled(t)
	c.refuse(meta.ErrInvalid, signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 7, Nonce: 1, Quota: -1}))
	c.do(signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 7, Nonce: 1, Quota: 50}))
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: "s", Nonce: 2}))
	c.do(signedBy(other, &state.SpecifyStage{StageName: stageName, Spec: "maps=9"}))
	j, _ := c.m.PoolJob("j")
	has := func(want int64) {
		t.Helper()
		c.m = through(t, c.m)
		if got := c.m.PoolBytes(j.Number); got != want {
			t.Errorf("the job has %d bytes, want %d", got, want)
		}
	}
	two := func(number uint64) *state.CommitMaps {
		k := commitOf(number, 0, other, 1)
		k.Maps[0].Maps[0].Nodes = []string{other, hostile}
		return k
	}
	keep := func(node string, has bool) state.Command {
		return signedBy(node, &state.KeepCopy{StageName: stageName, Node: node, Sum: 1, Has: has})
	}
	c.won(two(0))
	c.won(two(1))
	has(40)
	c.refuseCommit(meta.ErrQuota, two(2))
	both := batchOf(other, state.Commit{Map: 2, Sum: 1}, state.Commit{Map: 3, Sum: 1}) // there is room for one
	if r := c.do(both).Maps(); r[0].Commit == nil || !errors.Is(r[1].Error, meta.ErrQuota) {
		t.Errorf("%s", text(r))
	}
	has(50)
	c.refuseCommit(meta.ErrQuota, commitOf(3, 0, other, 1))
	c.won(two(0)) // it has won already
	c.do(keep(leader, true))
	has(60)
	c.do(keep(leader, false))
	c.do(keep(hostile, false))
	has(40)
	c.won(commitOf(3, 0, other, 1))
	c.do(keep(other, false))
	has(40)
	c.won(commitOf(4, 0, other, 1))
	c.refuseCommit(meta.ErrQuota, commitOf(0, 1, other, 1)) // which would heal it
	c.do(signedBy(other, &state.DropMap{StageName: stageName, Map: 1, Sum: 1}))
	has(30)
	c.won(commitOf(0, 1, other, 1))
	c.do(signedBy(operator, &state.Remove{ID: hostile}))
	has(40)
	c.do(signedBy(other, &state.ResetStage{StageName: stageName}))
	has(0)
	k := commitOf(0, 0, other, 1)
	k.Maps[0].Generation = 1
	c.won(k)
	c.do(signedBy(other, &state.DropStage{StageName: stageName}))
	has(0)
}

// What a node has reserved of a quota no others can have: not what is committed elsewhere, nor
// what is reserved there. A commit is of what its node has reserved, as far as that goes. A
// command that comes twice, or late, counts once. What a node had that was removed is free.
func TestReservedQuota(t *testing.T) {
	c := pooled(t, "maps=9")
	c.do(signedBy(other, &state.SetQuota{Name: "j", Quota: 100}))
	reserve := func(node string, asked, freed int64) state.Command {
		return signedBy(node, &state.ReserveQuota{Node: node, Name: "j", Asked: asked, Freed: freed})
	}
	are := func(want map[string]int64, left int64) {
		t.Helper()
		c.m = through(t, c.m)
		j, _ := c.m.PoolJob("j")
		got := make(map[string]int64)
		for node, r := range j.Reserved {
			got[node] = r.Bytes
		}
		if !maps.Equal(got, want) || c.m.PoolLeft("j") != left {
			t.Errorf("reserved: %v, and %d left; want %v and %d", got, c.m.PoolLeft("j"), want, left)
		}
	}
	c.refuse(meta.ErrInvalid, reserve(other, 0, 0))
	c.refuse(meta.ErrInvalid, reserve(other, 1, -1))
	c.do(reserve(other, 60, 0))
	c.do(reserve(other, 60, 0))
	c.refuse(meta.ErrQuota, reserve(hostile, 41, 0))
	c.do(reserve(hostile, 35, 0))
	c.refuse(meta.ErrQuota, reserve(other, 66, 0))
	c.do(reserve(other, 66, 6)) // the same again
	c.refuseCommit(meta.ErrQuota, commitOf(0, 0, leader, 1))
	are(map[string]int64{other: 60, hostile: 35}, 5)
	c.won(commitOf(0, 0, other, 1))
	c.won(commitOf(0, 1, other, 2)) // it has lost, and takes nothing
	c.do(reserve(other, 60, 0))     // late
	are(map[string]int64{other: 50, hostile: 35}, 5)
	c.do(reserve(hostile, 35, 31))
	are(map[string]int64{other: 50, hostile: 4}, 36)
	c.won(commitOf(1, 0, hostile, 1)) // more than is reserved
	are(map[string]int64{other: 50, hostile: 0}, 30)
	c.do(reserve(other, 66, 46))
	c.won(commitOf(2, 0, leader, 1))
	are(map[string]int64{other: 10, hostile: 0}, 60)
	c.do(reserve(hostile, 95, 31))
	c.refuseCommit(meta.ErrQuota, commitOf(3, 0, leader, 1))
	c.do(signedBy(operator, &state.Remove{ID: hostile}))
	are(map[string]int64{other: 10}, 70)
	c.won(commitOf(3, 0, leader, 1))
	c.do(signedBy(other, &state.SetQuota{Name: "j"}))
	c.do(reserve(other, 1<<62, 46)) // there is nothing to reserve
	are(map[string]int64{other: 0}, math.MaxInt64)
	c.refuse(meta.ErrNotExist, signedBy(other, &state.ReserveQuota{Node: other, Name: "j", Number: 1, Asked: 1}))
}

// A quota can be made larger, or smaller than the files of the job, which then stay, or be
// lifted; a job that followed another of its name keeps its own.
func TestAnotherQuota(t *testing.T) {
	c := pooled(t, "maps=9")
	set := func(quota int64) { c.do(signedBy(other, &state.SetQuota{Name: "j", Quota: quota})) }
	c.won(commitOf(0, 0, other, 1))
	set(9)
	c.m = through(t, c.m)
	c.refuseCommit(meta.ErrQuota, commitOf(1, 0, other, 1))
	if g := c.stage(); g.Maps != 1 {
		t.Errorf("%+v", g)
	}
	set(20)
	c.won(commitOf(1, 0, other, 1))
	c.refuseCommit(meta.ErrQuota, commitOf(2, 0, other, 1))
	set(0)
	c.won(commitOf(2, 0, other, 1))
	j, _ := c.m.PoolJob("j")
	c.refuse(meta.ErrNotExist, signedBy(other, &state.SetQuota{Name: "j", Number: j.Number - 1, Quota: 5}))
}
