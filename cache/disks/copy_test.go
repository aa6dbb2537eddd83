package disks_test

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A copy has the bytes of the slab, whatever its size, read from the disk or from
// memory; or there is none. One whose bytes changed is found out by the copy, also
// while Open would still trust it.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	k := start(t, one(dir, 64<<20))
	for n, size := range []int{0, 1, 4097, 256 << 10, 256<<10 + 1, 5<<20 + 3} {
		k.put(n, size)
		for _, from := range []string{"memory", "disk"} {
			mem := make([]byte, size)
			if ok, err := k.Copy(key(n), mem); !ok || err != nil || !bytes.Equal(mem, content(key(n), size)) {
				t.Errorf("a copy of %d bytes from %s: %v, %v", size, from, ok, err)
			}
			for _, path := range slabs(t, dir) {
				f, err := os.Open(path)
				must(t, err)
				must(t, unix.Fsync(int(f.Fd())))
				must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
				must(t, f.Close())
			}
		}
		if ok, err := k.Copy(key(n), make([]byte, size+1)); ok || err != nil || !k.Has(key(n)) {
			t.Errorf("a copy of a size that the slab does not have: %v, %v", ok, err)
		}
		k.Drop(key(n))
	}
	if ok, err := k.Copy(key(50), nil); ok || err != nil {
		t.Errorf("a copy of a slab that was never made: %v, %v", ok, err)
	}
	const size = 300 << 10
	k.put(60, size)
	flip(t, slabs(t, dir)[0], 200<<10)
	if ok, err := k.Copy(key(60), make([]byte, size)); ok || err != nil || k.stats().Damaged != 1 || k.Has(key(60)) {
		t.Errorf("a copy of a damaged slab: %v, %v, %+v", ok, err, k.stats())
	}
	if n := k.Held(); n != 0 {
		t.Errorf("%d slabs are still in use", n)
	}
}
