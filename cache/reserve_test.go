package cache_test

import (
	"errors"
	"path/filepath"
	"testing"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/meta"
)

// What others reserve counts in the budget of the tier: slabs make way for it,
// and have the room again afterwards.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: dir, Bytes: 128 << 20}}})
	large := &testPlan{id: 1, steps: 4, size: 20 << 20}
	for step := range large.steps { // each is larger than memory, and stays open in the cache
		open(t, k, large, 0, step).Release()
	}
	held := open(t, k, large, 0, 0)

	_, release, err := k.Reserve(t.Context(), 100<<20, "")
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
		if _, _, err := k.Reserve(t.Context(), test.bytes, ""); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("%s: got %v, want ErrNoSpace", test.name, err)
		}
	}
	release()
	release()
	if s := k.Stats().NVMe[0]; s.Others != 0 || s.Used > 20<<20 {
		t.Errorf("after release the tier says %+v", s)
	}
	open(t, k, large, 0, 1).Release()
}

func TestReserveWithoutNVMe(t *testing.T) {
	k := newCache(t, cache.Config{})
	if _, _, err := k.Reserve(t.Context(), 1, ""); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("got %v, want ErrNoSpace", err)
	}
}
