package state_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/state"
)

var blobs = state.StageName{Job: "j", Name: meta.BlobDir}

// withBlobs is a cluster with the job j, which has a directory of blobs.
func withBlobs(t testing.TB) *cluster {
	c := pooled(t, "maps=1")
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 3}))
	return c
}

// put is a blob of a node, of ten bytes.
func put(node, name string, number uint64) state.Commit {
	return state.Commit{Map: number, Writer: node, Size: 10, Sum: number, Nodes: []string{node}, Name: name}
}

func putOf(node string, all ...state.Commit) *state.CommitMaps {
	c := &state.CommitMaps{Maps: state.MapsByStage{{Stage: stageNumber + 1, Maps: all}}}
	signedBy(node, c)
	return c
}

func (c *cluster) blobs() state.PoolStage {
	j, _ := c.m.PoolJob("j")
	g, _ := c.m.Stage(j.Number, meta.BlobDir)
	return g
}

// The last blob that has a name wins it, and the one before is forgotten. What is put at
// once is put whole or not at all.
func TestBlobs(t *testing.T) {
	c := withBlobs(t)
	number := c.blobs().Number
	c.won(putOf(other, put(other, "k", 7)))
	c.won(putOf(other, put(other, "k", 7))) // again
	c.won(putOf(hostile, put(hostile, "k", 1<<59)))
	if b, _, ok := c.m.Blob(number, "k"); !ok || b.Number != 1<<59 {
		t.Errorf("k is %+v", b)
	}
	if _, ok := c.m.Commit(number, 7); ok || c.blobs().Maps != 1 || c.blobs().Bytes != 10 || c.blobs().Sealed {
		t.Errorf("after k was replaced: %+v", c.blobs())
	}
	c.refuseCommit(meta.ErrBusy, putOf(other, put(other, "l", 1<<59))) // a number that another has
	c.refuseCommit(meta.ErrNotExist, putOf(other, put(other, "d/k", 8)))
	c.refuseCommit(meta.ErrInvalid, putOf(other, put(other, "", 8)))
	c.refuseCommit(meta.ErrInvalid, putOf(other, put(other, "../k", 8)))
	at := func(dirs []state.Blob, maps ...state.Commit) *state.PutBlobs {
		p := &state.PutBlobs{StageName: blobs, Node: other, Dirs: dirs, Maps: maps}
		signedBy(other, p)
		return p
	}
	dir := func(name string, number uint64) []state.Blob {
		return []state.Blob{{Name: name, Number: number, Dir: true}}
	}
	before := fmt.Sprint(c.blobs(), c.m.Blobs(number, ""), c.maps(number))
	one := at(nil, put(other, "k", 20))
	one.New = true
	c.refuse(meta.ErrExist, one)
	c.refuse(meta.ErrExist, at(dir("k", 20), put(other, "k/x", 21)))
	c.refuse(meta.ErrNotExist, at(nil, put(other, "a", 20), put(other, "d/a", 21)))
	c.refuse(meta.ErrInvalid, at(nil, put(other, "a", 20), put(hostile, "b", 21)))
	c.refuse(meta.ErrInvalid, at(nil, put(other, "a", 20), put(other, "a", 21)))
	c.refuse(meta.ErrInvalid, at(nil, put(other, "a/.b", 20)))
	c.refuse(meta.ErrInvalid, signedBy(other, &state.SealStage{StageName: blobs}))
	c.refuse(meta.ErrInvalid, signedBy(other, &state.BeginStage{StageName: blobs}))
	c.refuse(meta.ErrInvalid, signedBy(other, &state.SpecifyStage{StageName: blobs, Spec: "maps=1"}))
	if fmt.Sprint(c.blobs(), c.m.Blobs(number, ""), c.maps(number)) != before {
		t.Error("what was refused has changed something")
	}
	whole := at(append(dir("d", 30), dir("d/e", 31)...), put(other, "d/a", 32), put(other, "d/e/b", 33))
	c.do(whole)
	c.do(whole)
	c.m = through(t, c.m)
	var names []string
	for _, d := range []string{"", "d", "d/e"} {
		for _, b := range c.m.Blobs(number, d) {
			names = append(names, b.Name)
		}
	}
	if got := strings.Join(names, " "); got != "d k d/a d/e d/e/b" {
		t.Errorf("there are %s", got)
	}
	drop := func(name string, number uint64, dir bool) state.Command {
		return signedBy(hostile, &state.DropBlob{StageName: blobs, Blob: state.Blob{Name: name, Number: number, Dir: dir}})
	}
	c.refuse(meta.ErrExist, drop("d/e", 31, true))
	c.do(drop("d/e/b", 32, false)) // another one
	if _, _, ok := c.m.Blob(number, "d/e/b"); !ok {
		t.Error("a blob went in place of another")
	}
	c.do(drop("d/e/b", 33, false))
	c.do(drop("d/e/b", 33, false))
	c.do(drop("d/e", 31, true))
	c.refuse(meta.ErrNotExist, at(nil, put(other, "d/e/b", 40)))
	if len(c.m.Blobs(number, "d")) != 1 || c.blobs().Maps != 2 {
		t.Errorf("%+v, %+v", c.m.Blobs(number, "d"), c.blobs())
	}
	c.do(signedBy(other, &state.DropStage{StageName: blobs}))
	if len(c.m.Blobs(number, "")) != 0 {
		t.Error("blobs outlive their stage")
	}
	c.m = through(t, c.m)
}

// Random puts and removals against a plain map, through snapshots.
func TestBlobModel(t *testing.T) {
	names := []string{"a", "b", "d", "d-a", "d/a", "d/b", "d/e", "d/e-a", "d/e/a", "d/e/b", "d/e0", "d0"}
	rapid.Check(t, func(r *rapid.T) {
		c := withBlobs(t)
		model := make(map[string]state.Blob)
		fits := func(b state.Blob, isNew bool, with map[string]bool) error {
			has, ok := model[b.Name]
			dir := meta.KeyDir(b.Name)
			switch {
			case ok && (isNew || b.Dir || has.Dir):
				return meta.ErrExist
			case dir != "" && !with[dir] && !model[dir].Dir:
				return meta.ErrNotExist
			}
			return nil
		}
		number := uint64(100)
		for range rapid.IntRange(1, 40).Draw(r, "commands") {
			name := rapid.SampledFrom(names).Draw(r, "name")
			number++
			switch rapid.IntRange(0, 6).Draw(r, "kind") {
			case 0:
				c.m = through(t, c.m)
			case 1:
				has, ok := model[name]
				_, err := c.try(signedBy(other, &state.DropBlob{StageName: blobs, Blob: has}))
				full := false
				for other := range model {
					full = full || has.Dir && strings.HasPrefix(other, name+"/")
				}
				switch {
				case !ok && !errors.Is(err, meta.ErrInvalid), ok && full != errors.Is(err, meta.ErrExist), ok && !full && err != nil:
					r.Fatalf("drop %s of %v: %v", name, model, err)
				case ok && !full:
					delete(model, name)
				}
			case 2, 3:
				b := state.Blob{Name: name, Number: number}
				want := fits(b, false, nil)
				if _, err := c.commit(putOf(other, put(other, name, number))); !errors.Is(err, want) {
					r.Fatalf("put %s into %v: %v, want %v", name, model, err, want)
				}
				if want == nil {
					model[name] = b
				}
			default:
				p := &state.PutBlobs{StageName: blobs, Node: other, New: rapid.Bool().Draw(r, "new")}
				all := make(map[string]state.Blob)
				with := make(map[string]bool)
				var want error
				for _, n := range names {
					if n != name && !rapid.Bool().Draw(r, "too") {
						continue
					}
					number++
					b := state.Blob{Name: n, Number: number, Dir: n == "d" || n == "d/e"}
					if want == nil || b.Dir && errors.Is(want, meta.ErrNotExist) {
						if err := fits(b, p.New, with); want == nil {
							want = err
						}
					}
					all[n] = b
					if with[n] = b.Dir; b.Dir {
						p.Dirs = append(p.Dirs, b)
					} else {
						p.Maps = append(p.Maps, put(other, n, number))
					}
				}
				_, err := c.try(signedBy(other, p))
				if (err == nil) != (want == nil) {
					r.Fatalf("put %v into %v: %v, want %v", all, model, err, want)
				}
				if want == nil {
					maps.Copy(model, all)
				}
			}
			c.check(r, model)
		}
	})
}

// check compares the blobs with those that there should be.
func (c *cluster) check(r *rapid.T, model map[string]state.Blob) {
	g := c.blobs()
	var numbers []uint64
	for _, name := range slices.Sorted(maps.Keys(model)) {
		b := model[name]
		if got, _, ok := c.m.Blob(g.Number, name); !ok || got != b {
			r.Fatalf("%s is %+v, want %+v", name, got, b)
		}
		if !b.Dir {
			numbers = append(numbers, b.Number)
		}
	}
	for _, dir := range []string{"", "a", "d", "d/e"} {
		var want []state.Blob
		for _, name := range slices.Sorted(maps.Keys(model)) {
			if meta.KeyDir(name) == dir {
				want = append(want, model[name])
			}
		}
		if got := c.m.Blobs(g.Number, dir); !slices.Equal(got, want) {
			r.Fatalf("in %q is %v, want %v", dir, got, want)
		}
	}
	var has []uint64
	for _, one := range c.m.Commits(g.Number).All() {
		has = append(has, one.Map)
	}
	slices.Sort(numbers)
	if !slices.Equal(has, numbers) || g.Maps != uint64(len(numbers)) || g.Bytes != 10*int64(len(numbers)) {
		r.Fatalf("maps %v, %+v; want %v", has, g, model)
	}
}

// BenchmarkRemoveDirectories lists and removes directories of one blob each, of which there are
// so many.
func BenchmarkRemoveDirectories(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 14} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := pooled(b, "maps=1")
			c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 3}))
			stage := c.blobs().Number
			add := func(i int) {
				d := state.Blob{Name: fmt.Sprintf("d%08d", i), Number: uint64(2 * i), Dir: true}
				c.do(signedBy(other, &state.PutBlobs{StageName: blobs, Node: other, Dirs: []state.Blob{d},
					Maps: state.Commits{put(other, d.Name+"/k", uint64(2*i+1))}}))
			}
			for i := range n {
				add(i)
			}
			for i := 0; b.Loop(); i++ {
				dir := fmt.Sprintf("d%08d", i)
				for _, in := range append(c.m.Blobs(stage, dir), state.Blob{Name: dir, Number: uint64(2 * i), Dir: true}) {
					c.do(signedBy(other, &state.DropBlob{StageName: blobs, Blob: in}))
				}
				add(n + i)
			}
		})
	}
}

// Blobs are part of their job's quota. One that takes another's name takes its room, too,
// and what is put at once has to fit together.
func TestQuotaOfBlobs(t *testing.T) {
	c := roled(t)
	c.do(signedBy(other, &state.MakeJob{Node: other, Name: "j", UID: 7, Nonce: 1, Quota: 25}))
	c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 2}))
	on := func(all ...state.Commit) *state.CommitMaps {
		k := putOf(other, all...)
		k.Maps[0].Stage = c.blobs().Number
		return k
	}
	c.won(on(put(other, "k", 1)))
	both := &state.PutBlobs{StageName: blobs, Node: other, Maps: state.Commits{put(other, "l", 2), put(other, "m", 3)}}
	c.refuse(meta.ErrQuota, signedBy(other, both))
	c.won(on(put(other, "l", 2)))
	c.refuseCommit(meta.ErrQuota, on(put(other, "m", 3)))
	c.won(on(put(other, "k", 4)))
	both.Maps = state.Commits{put(other, "k", 5), put(other, "l", 6)}
	c.do(signedBy(other, both))
	c.do(signedBy(other, &state.DropBlob{StageName: blobs, Blob: state.Blob{Name: "k", Number: 5}}))
	c.won(on(put(other, "m", 7)))
	c.m = through(t, c.m)
	if j, _ := c.m.PoolJob("j"); c.m.PoolBytes(j.Number) != 20 || c.blobs().Bytes != 20 {
		t.Errorf("%d bytes of %+v", c.m.PoolBytes(j.Number), c.blobs())
	}
}

// Of all commands a power failure may undo those alone that say of maps which are nowhere but
// in memory, and those that do nothing but remove.
func TestFleetingCommands(t *testing.T) {
	maps, blobs := commitOf(0, 0, other, 5), putOf(other, put(other, "k", 1))
	both := &state.CommitMaps{Maps: append(append(state.MapsByStage{}, maps.Maps...), blobs.Maps...)}
	unknown := &state.CommitMaps{Maps: state.MapsByStage{{Stage: 99, Maps: maps.Maps[0].Maps}}}
	for _, one := range []struct {
		name, spec string
		c          state.Command
		want       bool
	}{
		{"maps in memory", "maps=1", maps, true},
		{"maps on disks", "maps=1 ack=durable", maps, false},
		{"blobs", "maps=1", blobs, false},
		{"maps and blobs", "maps=1", both, false},
		{"maps of no stage", "maps=1", unknown, false},
		{"a seal", "maps=1", &state.SealStage{StageName: stageName}, false},
		{"a removed map", "maps=1", &state.DropMap{StageName: stageName}, true},
		{"a removed map on disks", "maps=1 ack=durable", &state.DropMap{StageName: stageName}, true},
		{"a removed blob", "maps=1", &state.DropBlob{StageName: state.StageName{Job: "j", Name: meta.BlobDir}}, true},
		{"a removed stage", "maps=1", &state.DropStage{StageName: stageName}, true},
		{"a removed job", "maps=1", &state.DropJob{Name: "j"}, true},
		{"a reset, which begins something", "maps=1", &state.ResetStage{StageName: stageName}, false},
		{"a copy that is lost", "maps=1", &state.KeepCopy{StageName: stageName, Node: other}, false},
		{"a directory of blobs", "maps=1", &state.PutBlobs{StageName: state.StageName{Job: "j", Name: meta.BlobDir}, Node: other, Dirs: []state.Blob{{Name: "d", Dir: true}}}, false},
	} {
		c := pooled(t, one.spec)
		c.do(signedBy(other, &state.MakeStage{Job: "j", Name: meta.BlobDir, Nonce: 3}))
		if got := c.m.Fleeting(one.c); got != one.want {
			t.Errorf("%s: %v", one.name, got)
		}
	}
}
