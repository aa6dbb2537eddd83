package disks_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
	"rankfs/test/eventually"
)

// two is a tier on a disk that will fail and on one that will not.
func two(t testing.TB, i *image) *tier {
	t.Helper()
	return start(t, disks.Config{
		Dirs:    []disks.Dir{{Path: i.slab, Bytes: 8 << 20}, {Path: t.TempDir(), Bytes: 4 << 20}},
		Suspend: 20 * time.Millisecond, Patience: 2 * time.Second, Trust: 1, Save: 10 * time.Millisecond,
	})
}

// The disk of one directory fails: what was on it is there no more, other
// directories go on, and it is used again when it is back.
func TestDiskFails(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.putAll(0, 20, 100<<10)
	on := k.stats().Slabs
	if on < 10 {
		t.Fatalf("%d slabs on the disk", on)
	}
	i.fail()
	fails := func() { // of each slab the right bytes or none
		for n := range 20 {
			if !k.got(n, 100<<10) {
				k.put(n, 100<<10)
			}
		}
	}
	fails()
	another := 200
	eventually.True(t, "slabs may take the room of the other disk, and what is there of this one", func() bool {
		k.put(another, 100<<10) // it rests only so long after a write that failed
		another++
		return k.Room() <= 4<<20+k.stats().Used
	})
	s := k.Stats()
	if s[0].Failed == 0 || s[1].Fault != nil || s[1].Slabs < 10 { // the rest is in memory still
		t.Errorf("%+v", s)
	}
	if n := k.log.count("nvme directory suspended", i.slab); n == 0 {
		t.Error("the log does not say so")
	}
	// The disk is taken out: its mount point is not filled instead.
	must(t, unix.Unmount(i.mnt, unix.MNT_DETACH))
	fails()
	if s := k.Stats(); s[1].Fault != nil || s[1].Slabs < 10 {
		t.Errorf("%+v", s)
	}
	if names, _ := os.ReadDir(i.mnt); len(names) != 0 {
		t.Errorf("%d files where the disk should be mounted", len(names))
	}
	i.mount()
	k.untilUsed()
	k.putAll(100, 120, 100<<10)
	for n := range 20 {
		k.got(n, 100<<10)
	}
	if s := k.stats(); s.Slabs < 10 {
		t.Errorf("%+v", s)
	}
	k.untilCounted(i.slab)
	k.stop()
}

// A page that is not there for a slab that is filled ends the fill in its
// directory, and no more: it is begun anew in another.
func TestPageGoneUnderFill(t *testing.T) {
	bad := t.TempDir()
	k := start(t, disks.Config{Dirs: []disks.Dir{{Path: bad, Bytes: 8 << 20}, {Path: t.TempDir(), Bytes: 4 << 20}}})
	const size = 100 << 10
	fills := 0
	err := k.Fill(key(1), size, func(mem []byte) error {
		if fills++; fills == 1 {
			parts, err := filepath.Glob(bad + "/.part-*")
			must(t, err)
			must(t, os.Truncate(parts[0], 0))
		}
		copy(mem, content(key(1), size))
		return nil
	}, nil)
	if err != nil || fills != 2 || !k.got(1, size) {
		t.Errorf("%d fills: %v", fills, err)
	}
	if s := k.Stats(); s[0].Fault == nil || s[0].Used != 0 || s[1].Slabs != 1 || k.log.count("nvme directory suspended", bad, "mapped page") != 1 {
		t.Errorf("%+v", s)
	}
}

// A disk that does not answer holds no call up for long, and a slab that it
// took half of gets no name.
func TestDiskStuck(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	i.ioctl(freeze, 0) // what writes to it waits now
	size := 200 << 10
	mem := content(key(2), size)
	must(t, k.Put(key(2), mem, nil))
	clear(mem) // it is ours again
	s := k.Stats()
	if s[0].Fault == nil || !strings.Contains(s[0].Fault.Error(), "does not answer") || s[1].Slabs != 1 {
		t.Errorf("%+v", s)
	}
	k.putAll(10, 20, 100<<10)
	if !k.got(2, size) || k.got(1, 100<<10) {
		t.Error("slabs of the wrong directories")
	}
	thaw(i.mnt)
	k.untilUsed()
	if !k.got(1, 100<<10) {
		t.Error("the slab that was there is not")
	}
	k.untilCounted(i.slab) // nothing unfinished is left
	if s := k.stats(); s.Slabs != 1 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// What was begun on a disk before it fell silent is removed when it answers.
func TestDiskStuckInAWrite(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	err := k.Fill(key(1), 100<<10, func([]byte) error {
		i.ioctl(freeze, 0)
		k.put(2, 100<<10) // finds that out
		return errors.New("no bytes")
	}, nil)
	if s := k.Stats(); err == nil || s[0].Fault == nil || s[1].Slabs != 1 {
		t.Errorf("%v: %+v", err, s)
	}
	thaw(i.mnt)
	k.untilUsed()
	k.untilCounted(i.slab)
	if left, _ := filepath.Glob(i.slab + "/.part-*"); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
	k.stop()
}

// A disk that turns read-only is read, and not written to.
func TestDiskReadOnly(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	must(t, unix.Mount("", i.mnt, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	k.putAll(10, 20, 100<<10)
	s := k.Stats()
	if k.log.count("nvme directory suspended", "read-only file system") == 0 || s[0].Slabs != 1 || s[1].Slabs != 10 || !k.got(1, 100<<10) {
		t.Errorf("%+v", s)
	}
	k.Drop(key(1)) // it cannot be removed: it counts, and is right
	if s := k.stats(); s.Slabs != 1 || s.Used < 100<<10 || !k.got(1, 100<<10) {
		t.Errorf("%+v", s)
	}
	must(t, unix.Mount("", i.mnt, "", unix.MS_REMOUNT, ""))
	k.untilUsed()
	k.put(30, 100<<10)
	if s := k.stats(); s.Slabs != 2 {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// A disk that has turned read-only before a start is read, and said to be so before anything
// is written, for as long as it is.
func TestDiskReadOnlyAtTheStart(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	k.stop()
	must(t, unix.Mount("", i.mnt, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := (disks.Config{Dirs: []disks.Dir{{Path: i.slab, Bytes: 8 << 20}}}).Try(); err != nil {
		t.Errorf("tried: %v", err)
	}
	k = two(t, i)
	if !k.got(1, 100<<10) {
		t.Error("it is not read")
	}
	for range 20 { // longer than it rests
		if s := k.stats(); s.Fault == nil || !strings.Contains(s.Fault.Error(), "it is on a read-only file system: what it has is read, and nothing is written there") {
			t.Errorf("it is %v", s.Fault)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if n := k.log.count("nvme directory suspended", "read-only"); n != 1 {
		t.Errorf("%d lines in the log, want 1", n)
	}
	must(t, unix.Mount("", i.mnt, "", unix.MS_REMOUNT, ""))
	k.untilUsed()
	k.put(2, 100<<10)
	if s := k.stats(); s.Slabs != 2 {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// A disk that has a fault at the start is suspended, whether there is another or not, and is used when it
// is well.
func TestDiskIllAtTheStart(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	k.stop()
	i.run("sync", "-f", i.mnt)
	i.fail()
	alone := one(i.slab, 8<<20)
	if err := alone.Try(); err != nil {
		t.Errorf("tried: %v", err)
	}
	k = start(t, alone)
	if s := k.stats(); s.Fault == nil || s.Slabs != 0 || k.Room() != 0 {
		t.Errorf("%+v", s)
	}
	k.stop()
	k = two(t, i)
	k.put(2, 100<<10)
	if s := k.Stats(); s[0].Fault == nil || s[1].Fault != nil || s[1].Slabs != 1 || k.log.count("nvme directory suspended", i.slab) != 1 {
		t.Errorf("%+v", s)
	}
	i.unmount()
	i.mount()
	k.untilUsed()
	if !k.got(1, 100<<10) {
		t.Error("what was on it is not read")
	}
	k.stop()
}

// A directory that another process removed is made again, and nothing of the old one
// counts.
func TestDirectoryRemoved(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	held := k.hold(1)
	must(t, os.RemoveAll(i.slab))
	compare(t, held, key(1), 100<<10)
	if k.got(1, 100<<10) {
		t.Error("there is no such file")
	}
	k.putAll(10, 20, 100<<10)
	if s := k.Stats(); s[0].Failed != 0 || s[1].Fault != nil || k.log.count("nvme directory suspended", "is gone") == 0 {
		t.Errorf("%+v", s)
	}
	eventually.True(t, "it is there again", func() bool {
		_, err := os.Stat(i.slab)
		return err == nil && k.stats().Fault == nil
	})
	k.putAll(30, 60, 100<<10) // more than the other one holds
	compare(t, held, key(1), 100<<10)
	held.Release()
	k.untilCounted(i.slab)
	if s := k.stats(); s.Slabs < 5 || s.Slabs != len(slabs(t, i.slab)) || k.Has(key(1)) {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// The mount point of a disk that is gone is not a place for slabs. The disk is
// let go of, and taken again when it is back.
func TestMountPointLeft(t *testing.T) {
	i := newImage(t, 32)
	i.slab = i.mnt // the very root of the disk
	k := two(t, i)
	k.put(1, 100<<10)
	must(t, unix.Unmount(i.mnt, unix.MNT_DETACH))
	must(t, os.WriteFile(i.mnt+"/mine", nil, 0o600))
	eventually.True(t, "it is missed", func() bool { return k.stats().Fault != nil })
	k.putAll(10, 20, 100<<10)
	eventually.True(t, "it is let go of", func() bool { return k.stats().Slabs == 0 })
	if _, err := k.Reserve(1<<10, i.slab); !errors.Is(err, meta.ErrNoSpace) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a reservation where no disk is: %v", err)
	}
	if s := k.Stats(); !strings.Contains(s[0].Fault.Error(), "is gone") || s[0].Used != 0 || s[1].Slabs != 10 {
		t.Errorf("%+v", s)
	}
	if names, _ := os.ReadDir(i.mnt); len(names) != 1 {
		t.Errorf("there is %v where the disk should be", names)
	}
	must(t, os.Remove(i.mnt+"/mine"))
	i.mount()
	k.untilUsed()
	if !k.got(1, 100<<10) {
		t.Error("the slab on it is not there")
	}
	k.stop()
}

// A disk that is full to the last block, inodes too, is no other case.
func TestDiskFull(t *testing.T) {
	i := newImage(t, 16)
	must(t, os.Mkdir(i.slab, 0o700))
	i.fillUp(0)
	for n := 0; ; n++ {
		f, err := os.Create(i.mnt + "/file" + string(rune('a'+n%26)) + time.Duration(n).String())
		if err != nil {
			break
		}
		f.Close()
	}
	k := start(t, one(i.slab, 8<<20))
	if s := k.stats(); !errors.Is(s.Fault, unix.ENOSPC) {
		t.Errorf("started without an inode for its lock: %+v", s)
	}
	k.stop()
	k = two(t, i)
	k.putAll(0, 10, 100<<10)
	if s := k.Stats(); s[0].Fault == nil || s[1].Slabs != 10 {
		t.Errorf("%+v", s)
	}
	k.stop()
}

// What a write had begun is removed when the directory that went away meanwhile is
// back.
func TestDirectoryGoesInAWrite(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	k.put(1, 100<<10)
	must(t, os.WriteFile(i.slab+"+", nil, 0o600))
	swap := func() {
		must(t, unix.Renameat2(unix.AT_FDCWD, i.slab, unix.AT_FDCWD, i.slab+"+", unix.RENAME_EXCHANGE))
	}
	err := k.Fill(key(2), 100<<10, func([]byte) error {
		swap()
		eventually.True(t, "it is let go of", func() bool { return k.stats().Slabs == 0 && !opened(t, i.slab+"+") })
		return errors.New("no bytes")
	}, nil)
	if err == nil {
		t.Fatal("what failed was kept")
	}
	if all, _ := filepath.Glob(i.slab + "+/.part-*"); len(all) == 0 {
		t.Fatal("nothing is left of the write")
	}
	swap()
	k.untilUsed()
	k.putAll(10, 60, 100<<10) // more than the other one holds
	k.untilCounted(i.slab)
	k.stop()
}

// opened reports whether this process has the directory open itself.
func opened(t testing.TB, dir string) bool {
	fds, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	return slices.ContainsFunc(fds, func(fd string) bool {
		path, _ := os.Readlink(fd) // it may be closed by now
		return path == dir
	})
}

// A disk that does not answer does not hold up the writer of a file of another kind than
// slabs, and what is written late does no harm: the file is not used before the disk has
// answered.
func TestFileOnAStuckDisk(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	r, err := k.Reserve(4<<20, i.slab)
	must(t, err)
	if !r.Charge() {
		t.Fatal("no room")
	}
	f, err := r.Make("files", "one", 1<<20)
	must(t, err)
	first, second := content(key(1), 1<<20), content(key(2), 1<<20)
	if _, err = f.WriteAt(first, 0); err != nil {
		t.Fatal(err)
	}
	i.ioctl(freeze, 0)
	if _, err := f.WriteAt(second, 0); err == nil || errors.Is(err, meta.ErrNoSpace) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
	clear(second) // it is ours again
	for name, ask := range map[string]func() error{
		"write": func() error { _, err := f.WriteAt(first, 0); return err },
		"sum":   func() error { _, err := f.Sum(0, 1<<20); return err },
		"seal":  func() error { return f.Seal("whole") },
		"open":  func() error { _, err := r.Folder("files").Open("one"); return err },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s: %v", name, err)
		}
	}
	thaw(i.mnt)
	k.untilUsed()
	_, err = f.WriteAt(first, 0)
	must(t, err)
	must(t, f.Seal("whole"))
	must(t, f.Close())
	got, err := os.ReadFile(i.slab + "/files/whole")
	if err != nil || string(got) != string(first) {
		t.Errorf("%d bytes of the file are not what was written last: %v", len(got), err)
	}
	r.Release()
	k.stop()
}

// A file that has its name is on the disk, with its bytes, when the power fails.
func TestSealedFileLasts(t *testing.T) {
	i := newImage(t, 32)
	k := two(t, i)
	const size = 5000 // so little that nothing but a sync writes it soon
	r, err := k.Reserve(4<<20, i.slab)
	must(t, err)
	f, err := r.Make("files", "one", size)
	must(t, err)
	_, err = f.WriteAt(content(key(1), size), 0)
	must(t, err)
	must(t, f.Seal("whole"))
	must(t, f.Close())
	i.cutPower()
	k.Close()
	i.revive()
	got, err := os.ReadFile(i.slab + "/files/whole")
	if err != nil || string(got) != string(content(key(1), size)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
