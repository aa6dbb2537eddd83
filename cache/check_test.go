package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"rankfs/cache"
	"rankfs/cache/disks"
)

// A slab on a disk that the cache has open is compared again before another reader gets it; a
// reader that holds the damaged one is no hindrance.
func TestDamagedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: dir, Bytes: 100 << 20}}})
	large := &testSeries{id: 1, steps: 1, size: 20 << 20}
	first := open(t, k, large, 0, 0)
	for round := range 3 {
		held := open(t, k, large, 0, 0)
		flipBit(t, dir)
		s := open(t, k, large, 0, 0)
		check(t, s, large, 0, 0)
		s.Release()
		held.Release()
		if n := k.Stats(); n.NVMe[0].Damaged != uint64(round+1) || n.Fills != uint64(round+2) || n.NVMe[0].Slabs != 1 {
			t.Errorf("%d damaged, %d fills, %d slabs", n.NVMe[0].Damaged, n.Fills, n.NVMe[0].Slabs)
		}
	}
	first.Release()
	s := open(t, k, large, 0, 0)
	check(t, s, large, 0, 0)
	s.Release()
	if n := k.Stats(); n.NVMe[0].Damaged != 3 || n.Fills != 4 {
		t.Errorf("%d damaged, %d fills", n.NVMe[0].Damaged, n.Fills)
	}
}

// flipBit changes a bit of the only slab.
func flipBit(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*.slab")
	if err != nil || len(paths) != 1 {
		t.Fatalf("slabs: %q, %v", paths, err)
	}
	f, err := os.OpenFile(paths[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], 12345678); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 0x80}, 12345678); err != nil {
		t.Fatal(err)
	}
}
