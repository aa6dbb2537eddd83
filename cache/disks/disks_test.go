package disks_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/meta"
)

func TestSizes(t *testing.T) {
	k := start(t, one(t.TempDir(), 64<<20))
	for n, size := range []int{0, 1, 4095, 4096, 4097, 256 << 10, 256<<10 + 1, 5<<20 + 3} {
		k.put(n, size)
		if !k.got(n, size) {
			t.Errorf("a slab of %d bytes is not there", size)
		}
		if err := k.fill(100+n, size, nil); err != nil || !k.got(100+n, size) {
			t.Errorf("a filled slab of %d bytes is not there: %v", size, err)
		}
	}
	if k.Has(key(50)) || k.got(50, 1) {
		t.Error("there is a slab that was never made")
	}
}

// A fill that fails leaves nothing.
func TestFillFails(t *testing.T) {
	dir := t.TempDir()
	k := start(t, one(dir, 1<<20))
	broken := errors.New("no route")
	if err := k.Fill(key(1), 5000, func([]byte) error { return broken }, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if s := k.stats(); s.Used != 0 || s.Slabs != 0 || s.Fault != nil || k.Has(key(1)) {
		t.Errorf("%+v", s)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// The budget is of blocks on disk, and slabs used longest ago make way.
func TestBudget(t *testing.T) {
	dir := t.TempDir()
	k := start(t, one(dir, 100<<10))
	for n := range 50 {
		k.put(n, 9000) // three blocks
		if u, real := k.stats().Used, diskUsage(t, dir); u != real || u > 100<<10 {
			t.Fatalf("%d bytes used, %d on disk", u, real)
		}
		if !k.got(0, 9000) {
			t.Fatalf("the slab that is used most went at %d", n)
		}
	}
	if s := k.stats(); s.Slabs != 8 || !k.Has(key(49)) || k.Has(key(42)) {
		t.Errorf("%+v", s)
	}
	if err := k.Put(key(60), make([]byte, 101<<10), nil); !errors.Is(err, disks.ErrNoRoom) || !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("more than the budget: %v", err)
	}
	if s := k.stats(); s.Slabs != 8 || s.Fault != nil {
		t.Errorf("what can never fit has driven out others: %+v", s)
	}
}

// A planner says which slab goes first, of those that are not open and were used longest ago.
func TestFirst(t *testing.T) {
	c := one(t.TempDir(), 10*4096)
	c.First = func(a, b disks.Key) bool { return a.Step > b.Step }
	k := start(t, c)
	k.putAll(0, 10, 4096)
	held := k.hold(9)
	k.putAll(20, 23, 4096) // each goes for the next one
	held.Release()
	for n, want := range map[int]bool{0: true, 7: true, 8: false, 9: true, 20: false, 21: false, 22: true} {
		if k.Has(key(n)) != want {
			t.Errorf("slab %d is there: %v", n, !want)
		}
	}
}

// A slab that is open stays readable when it is dropped, and one that is mapped
// when it is closed as well; its bytes count until both have ended.
func TestDrop(t *testing.T) {
	dir := t.TempDir()
	k := start(t, one(dir, 16<<10))
	k.put(1, 8192)
	s := k.hold(1)
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.Fd())) // as the kernel has one of its own for a rank
	must(t, err)
	mem, err := unix.Mmap(int(f.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	f.Close()
	k.Drop(key(1))
	k.Drop(key(1))
	if k.Has(key(1)) || len(slabs(t, dir)) != 0 {
		t.Error("it is still there")
	}
	compare(t, s, key(1), 8192)
	k.put(1, 8192) // anew, while the old one lives
	s.Release()
	s.Release()
	if s := k.stats(); s.Used != 16<<10 || s.Dying != 8192 || s.Slabs != 1 {
		t.Errorf("while it is mapped: %+v", s)
	}
	if !bytes.Equal(mem, content(key(1), 8192)) {
		t.Error("the mapping changed")
	}
	held := k.hold(1)
	if err := k.Put(key(2), content(key(2), 4096), nil); !errors.Is(err, disks.ErrNoRoom) {
		t.Errorf("put while all is held or mapped: %v", err)
	}
	must(t, unix.Munmap(mem))
	k.put(2, 4096)
	if s := k.stats(); s.Used != 12<<10 || s.Dying != 0 {
		t.Errorf("when it is not mapped: %+v", s)
	}
	held.Release()
	k.Drop(key(1))
	k.Drop(key(2))
	if s := k.stats(); s.Used != 0 || s.Slabs != 0 || diskUsage(t, dir) != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// Slabs go where most of the budget is left.
func TestDirectoriesShare(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	k := start(t, disks.Config{Dirs: []disks.Dir{{Path: a, Bytes: 40 << 10}, {Path: b, Bytes: 80 << 10}}})
	k.putAll(0, 30, 4096)
	if s := k.Stats(); s[0].Slabs != 10 || s[1].Slabs != 20 {
		t.Errorf("%d and %d slabs", s[0].Slabs, s[1].Slabs)
	}
	if n := k.gotOf(30, 4096); n != 30 {
		t.Errorf("%d slabs are there", n)
	}
	k.put(30, 60<<10) // fits in one of them
	if s := k.Stats(); s[0].Used > 40<<10 || s[1].Used > 80<<10 || !k.got(30, 60<<10) {
		t.Errorf("%+v", s)
	}
	if s := k.hold(30); s.Dir() != b {
		t.Errorf("it is in %s", s.Dir())
	} else {
		s.Release()
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	for _, test := range []struct {
		name string
		dirs []disks.Dir
		want string
		kind error // nil: none
	}{
		{"no budget", []disks.Dir{{Path: dir, Bytes: 0}}, "budget above zero", meta.ErrInvalid},
		{"twice", []disks.Dir{{Path: dir, Bytes: 1}, {Path: dir + "/", Bytes: 1}}, "given twice", meta.ErrInvalid},
		{"a file", []disks.Dir{{Path: dir + "/file", Bytes: 1}}, "not a directory", meta.ErrInvalid},
		{"a file beside a directory", []disks.Dir{{Path: dir, Bytes: 1}, {Path: dir + "/file", Bytes: 1}}, "nvme directory " + dir + "/file: it is below a file, or not a directory; name a directory", meta.ErrInvalid},
		{"below what is not there", []disks.Dir{{Path: dir + "/disk/one", Bytes: 1}}, "nvme directory " + dir + "/disk/one: " + dir + "/disk does not exist: mount its disk first, or make it with: mkdir -p " + dir + "/disk", nil},
		{"twice by another name", []disks.Dir{{Path: dir, Bytes: 1}, {Path: "/proc/self/root" + dir, Bytes: 1}}, "another rankfs", meta.ErrBusy},
	} {
		if _, err := tryStart(t, disks.Config{Dirs: test.dirs}); err == nil || !strings.Contains(err.Error(), test.want) || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%s: got %v, want %q and %v", test.name, err, test.want, test.kind)
		}
	}
	k := start(t, one(dir+"/new", 1<<20))
	k.put(1, 100)
	if _, err := tryStart(t, one(dir+"/new", 1)); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("a second daemon: %v", err)
	}
}

// Before anything is made each directory is tried, and none is passed over that cannot be one.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	must(t, os.Mkdir(dir+"/disk", 0o700))
	must(t, os.Symlink(dir+"/disk", dir+"/link"))
	must(t, os.Symlink("circle", dir+"/circle"))
	readOnly := newMountPoint(t) + "/mnt"
	must(t, unix.Mount("none", readOnly, "tmpfs", unix.MS_RDONLY, ""))
	t.Cleanup(func() { must(t, unix.Unmount(readOnly, 0)) })
	for _, test := range []struct {
		name string
		dirs []string
		want []string // a line for each; none: they can be used
		kind error
	}{
		{"one there and one to be made", []string{dir + "/disk", dir + "/disk/new"}, nil, nil},
		{"one and what is not there", []string{dir + "/disk", dir + "/none/one"}, []string{"/none/one: " + dir + "/none does not exist"}, meta.ErrNotExist},
		{"one and a file", []string{dir + "/disk", dir + "/file"}, []string{"/file: it is below a file, or not a directory; name a directory"}, meta.ErrInvalid},
		{"one and links in a circle", []string{dir + "/circle", dir + "/disk"}, []string{"/circle: its symbolic links lead in a circle; name a directory"}, meta.ErrInvalid},
		{"one and what is read-only", []string{dir + "/disk", readOnly}, []string{"/mnt: it is on a read-only file system; have that take writes, or name a directory"}, unix.EROFS},
		{"two", []string{dir + "/file", dir + "/disk", readOnly}, []string{"/file: ", "/mnt: "}, unix.EROFS},
		{"one by two names", []string{dir + "/disk", dir + "/link"}, []string{dir + "/link: it is " + dir + "/disk by another name: give it once, with one budget"}, meta.ErrInvalid},
		{"one to be made, by two names", []string{dir + "/disk/new", dir + "/link/new"}, []string{dir + "/link/new: it is " + dir + "/disk/new by another name"}, meta.ErrInvalid},
	} {
		c := disks.Config{}
		for _, path := range test.dirs {
			c.Dirs = append(c.Dirs, disks.Dir{Path: path, Bytes: 1 << 20})
		}
		err := c.Try()
		if test.want == nil {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if !errors.Is(err, test.kind) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.kind)
			continue
		}
		lines := strings.Split(meta.Plain(err), "\n")
		if len(lines) != len(test.want) {
			t.Errorf("%s: got %q", test.name, lines)
			continue
		}
		for i, want := range test.want {
			if !strings.HasPrefix(lines[i], "nvme directory ") || !strings.Contains(lines[i], want) {
				t.Errorf("%s: got %q, want %q", test.name, lines[i], want)
			}
		}
	}
	if _, err := os.Stat(dir + "/disk/new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}

// What is reserved for others is not for slabs, which make way.
func TestReservation(t *testing.T) {
	k := start(t, one(t.TempDir(), 40<<10))
	k.putAll(0, 10, 4096)
	held := k.hold(0)
	c, err := k.Reserve(36<<10, "")
	must(t, err)
	if room := k.Room(); room != 4<<10 {
		t.Errorf("slabs may take %d bytes beside 36 KiB", room)
	}
	if !c.Charge() || k.stats().Used != 40<<10 || k.stats().Others != 36<<10 || !k.Has(key(0)) || k.Room() != 4<<10 {
		t.Errorf("%+v", k.stats())
	}
	if _, err := k.Reserve(5<<10, ""); !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("more than is left: %v", err)
	}
	more, err := k.Reserve(4<<10, "")
	must(t, err)
	if more.Charge() {
		t.Error("a slab that is open made way")
	}
	held.Release()
	if !more.Charge() || k.stats().Slabs != 0 {
		t.Errorf("%+v", k.stats())
	}
	if !more.Charge() {
		t.Error("what is charged is no more")
	}
	for range 2 {
		c.Release()
		more.Release()
	}
	if s := k.stats(); s.Used != 0 || s.Others != 0 {
		t.Errorf("%+v", s)
	}
}

// Many at once: right bytes, and the budget holds.
func TestStress(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	k := start(t, disks.Config{Dirs: []disks.Dir{{Path: a, Bytes: 300 << 10}, {Path: b, Bytes: 200 << 10}}, Trust: 1})
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for i := range 200 {
				n := (i*7 + g*13) % 40
				size := 1000 + 997*n
				if s, err := k.Open(key(n)); err != nil {
					t.Error(err)
				} else if s != nil {
					compare(t, s, key(n), size)
					s.Release()
					if i%5 == 0 {
						k.Drop(key(n))
					}
				} else if err := k.Put(key(n), content(key(n), size), nil); err != nil && !errors.Is(err, disks.ErrNoRoom) {
					t.Error(err)
				}
				if s := k.Stats(); s[0].Used > 300<<10 || s[1].Used > 200<<10 {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	all.Wait()
	for i, s := range k.Stats() {
		if dir := []string{a, b}[i]; s.Used != diskUsage(t, dir) || s.Used > s.Budget || s.Slabs != len(slabs(t, dir)) || s.Dying != 0 {
			t.Errorf("%+v, on disk %d bytes in %d slabs", s, diskUsage(t, dir), len(slabs(t, dir)))
		}
		if s.Damaged+s.Lost+s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// A slab that is filled may leave alone those that may not go for it.
func TestFillSpares(t *testing.T) {
	k := start(t, one(t.TempDir(), 1<<20))
	const size = 100 << 10
	k.putAll(0, 9, size)
	odd := func(k disks.Key) bool { return k.Step%2 == 1 }
	for n := 20; n < 30; n += 2 {
		must(t, k.fill(n, size, odd))
	}
	err := error(nil)
	for n := 30; n < 40 && err == nil; n += 2 {
		err = k.fill(n, size, odd)
	}
	if !errors.Is(err, disks.ErrNoRoom) {
		t.Errorf("got %v", err)
	}
	for n := range 9 {
		if even := n%2 == 0; k.Has(key(n)) != even {
			t.Errorf("slab %d is there: %v", n, !even)
		}
	}
	if h := k.Holdings()[key(0).Series]; h.Slabs != len(k.Keys(key(0).Series)) || h.Bytes < int64(h.Slabs)*size || h.Slabs < 9 {
		t.Errorf("%+v, %d keys", h, len(k.Keys(key(0).Series)))
	}
	must(t, k.fill(99, size, nil))
}
