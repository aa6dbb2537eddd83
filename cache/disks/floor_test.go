package disks_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
)

// Nothing is written that would leave less than the floor free; slabs make way
// when others fill the disk, and if that does not help it is said.
func TestFloor(t *testing.T) {
	i := newImage(t, 64)
	c := one(i.slab, 40<<20)
	c.Floor = disks.Floor{Bytes: 10 << 20, Percent: 1}
	c.Suspend = time.Hour
	k := start(t, c)
	i.fillUp(20 << 20)
	for n := range 30 {
		k.put(n, 1<<20)
		if free := i.free(); free < 10<<20 {
			t.Fatalf("%d bytes free", free)
		}
	}
	if s := k.stats(); s.Slabs < 5 || s.Slabs > 10 || !errors.Is(s.Fault, unix.ENOSPC) || k.log.count("nvme tier makes way") != 1 {
		t.Errorf("%+v", s)
	}
	if room := k.Room(); room < 5<<20 || room > 10<<20 {
		t.Errorf("slabs may take %d bytes, want what is left beside the floor", room)
	}
	k.put(40, 1<<20) // that it is said does not stop it
	f, err := os.Create(i.mnt + "/more")
	must(t, err)
	defer f.Close()
	must(t, unix.Fallocate(int(f.Fd()), 0, 0, 9<<20))
	if err := k.Put(key(50), make([]byte, 11<<20), nil); !errors.Is(err, disks.ErrNoRoom) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if s := k.stats(); s.Slabs != 0 || k.log.count("nvme directory suspended", "--nvme-floor") != 1 {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// Files that would not fit if all slabs made way are refused, and none does.
func TestNothingMakesWayForNothing(t *testing.T) {
	i := newImage(t, 64)
	c := one(i.slab, 40<<20)
	c.Floor = disks.Floor{Bytes: 10 << 20, Percent: 1}
	k := start(t, c)
	i.fillUp(20 << 20)
	k.putAll(0, 5, 1<<20)
	if r, err := k.Reserve(35<<20, ""); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("reserved %v, %v", r, err)
	}
	if n := k.stats().Slabs; n != 5 {
		t.Errorf("%d of 5 slabs are left", n)
	}
	if _, err := k.Reserve(1<<20, t.TempDir()); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("reserved in a directory of others: %v", err)
	}
	k.stop()
}

// Two directories on one disk share its floor.
func TestFloorShared(t *testing.T) {
	i := newImage(t, 64)
	must(t, os.Mkdir(i.slab, 0o700))
	k := start(t, disks.Config{Floor: disks.Floor{Percent: 50},
		Dirs: []disks.Dir{{Path: i.slab + "/a", Bytes: 100 << 20}, {Path: i.slab + "/b", Bytes: 100 << 20}}})
	var s unix.Statfs_t
	must(t, unix.Statfs(i.mnt, &s))
	for n := range 60 {
		if err := k.Put(key(n), content(key(n), 1<<20), nil); err != nil && !errors.Is(err, meta.ErrNoSpace) {
			t.Error(err)
		}
		if free := i.free(); free < int64(s.Blocks)*s.Bsize/2 {
			t.Fatalf("%d bytes free", free)
		}
	}
	if a, b := k.Stats()[0].Slabs, k.Stats()[1].Slabs; a < 5 || b < 5 {
		t.Errorf("%d and %d slabs", a, b)
	}
	k.stop()
}

// Room that was reserved on a file system is given to no other file, from before there is a
// file until after it has its blocks.
func TestReservationsKeepTheFloor(t *testing.T) {
	i := newImage(t, 64)
	c := one(i.slab, 40<<20)
	c.Floor = disks.Floor{Bytes: 10 << 20}
	k := start(t, c)
	i.fillUp(24 << 20)
	const size = 8 << 20
	first, err := k.Reserve(size, "")
	must(t, err)
	refused := func(when string) {
		t.Helper()
		if second, err := k.Reserve(size, ""); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("reserved %v with %d bytes free, %s: %v", second, i.free(), when, err)
		}
	}
	refused("before the first has a file")
	f, err := first.Make("files", "one", size)
	must(t, err)
	refused("beside its file")
	must(t, f.Seal("whole"))
	must(t, f.Close())
	must(t, first.Folder("files").Remove("whole"))
	first.Release()
	again, err := k.Reserve(size, "")
	must(t, err)
	again.Release()
	k.stop()
}
