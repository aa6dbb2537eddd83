package cache_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/meta"
)

// What others reserve counts in the budget of the tier: slabs make way for it,
// and have the room again afterwards.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: dir, Bytes: 128 << 20}}})
	large := &testSeries{id: 1, steps: 4, size: 20 << 20}
	for step := range large.steps { // each is larger than memory, and stays open in the cache
		open(t, k, large, 0, step).Release()
	}
	held := open(t, k, large, 0, 0)

	r, err := k.Reserve(t.Context(), 100<<20, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := k.Stats().NVMe[0]; s.Used != 120<<20 || s.Others != 100<<20 || s.Slabs != 1 {
		t.Errorf("the tier says %+v, want one slab beside the 100 MiB", s)
	}
	if files, err := filepath.Glob(dir + "/*.slab"); err != nil || len(files) != 1 {
		t.Errorf("on disk: %v, %v", files, err)
	}
	check(t, held, large, 0, 0)
	held.Release()

	for _, test := range []struct {
		name  string
		bytes int64
	}{{"what others have", 29 << 20}, {"more than the budget", 129 << 20}, {"all there are", 1<<63 - 1}} {
		if _, err := k.Reserve(t.Context(), test.bytes, ""); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("%s: got %v, want ErrNoSpace", test.name, err)
		}
	}
	r.Release()
	r.Release()
	if s := k.Stats().NVMe[0]; s.Others != 0 || s.Used > 20<<20 {
		t.Errorf("after release the tier says %+v", s)
	}
	open(t, k, large, 0, 1).Release()
}

// What fits in one directory now does not wait for ranks that hold another one.
func TestReserveElsewhere(t *testing.T) {
	full, free := t.TempDir(), t.TempDir()
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: full, Bytes: 64 << 20}, {Path: free, Bytes: 30 << 20}}})
	large := &testSeries{id: 1, steps: 2, size: 20 << 20}
	for step := range large.steps { // larger than memory: both are in the directory that has more room
		defer open(t, k, large, 0, step).Release()
	}
	if s := k.Stats().NVMe; s[0].Slabs != 2 {
		t.Fatalf("%+v", s)
	}
	r, err := k.Reserve(t.Context(), 25<<20, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if dir := r.Dir().Path; dir != free {
		t.Errorf("it is in %s, want the one that is free", dir)
	}
	if s := k.Stats().NVMe; s[0].Others != 0 || s[1].Others != 25<<20 {
		t.Errorf("%+v", s)
	}
}

func TestReserveWithoutNVMe(t *testing.T) {
	k := newCache(t, cache.Config{})
	if _, err := k.Reserve(t.Context(), 1, ""); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
}

// A policy is told of the disks what slabs may take of them, which is not what others
// have reserved.
func TestPoliciesSeeWhatSlabsMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{RAMBytes: 64 << 20, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 128 << 20}}})
		p := &testSeries{id: 1, steps: 8, size: 1 << 20}
		chosen := func() int64 {
			t.Helper()
			for i, choices := 0, k.Stats().Choices; k.Stats().Choices == choices; i++ {
				if i == 1000 {
					t.Fatal("no choice is made")
				}
				open(t, k, p, 0, uint64(i)%p.steps).Release()
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			return k.ChosenDisk()
		}
		if got := chosen(); got != 128<<20 {
			t.Errorf("chosen for %d bytes of an empty disk", got)
		}
		r, err := k.Reserve(t.Context(), 100<<20, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := chosen(); got != 28<<20 {
			t.Errorf("chosen for %d bytes beside the 100 MiB", got)
		}
		r.Release()
		if got := chosen(); got != 128<<20 {
			t.Errorf("chosen for %d bytes after the release", got)
		}
	})
}
