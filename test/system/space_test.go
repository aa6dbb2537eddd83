package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// newDisk mounts a small ext4 of its own.
func newDisk(t testing.TB, p *node, mib int) string {
	t.Helper()
	image, dir := filepath.Join(p.dir, "disk.img"), filepath.Join(p.dir, "disk")
	sh(t, `truncate -s "$3"M "$1" && mkfs.ext4 -q -F "$1" && mkdir "$2" && mount -o loop "$1" "$2"`, image, dir, fmt.Sprint(mib))
	t.Cleanup(func() {
		if r := tryCommand("umount", dir); r.code != 0 {
			t.Errorf("umount %s: %v", dir, r)
			tryCommand("umount", "-l", dir)
		}
	})
	return dir
}

// newTmpfs mounts a small tmpfs.
func newTmpfs(t testing.TB, p *node, size string) string {
	t.Helper()
	dir := filepath.Join(p.dir, "tmpfs")
	must(t, os.Mkdir(dir, 0o700))
	must(t, unix.Mount("none", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
	return dir
}

// A disk that fills up costs its tier and nothing else: memory serves on, and
// status says what is wrong.
func TestFullDiskUnderNVMe(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	p.at = newDisk(t, p, 24) + "/slabs"
	n, s := p.start("--ram", "16MiB", "--nvme", p.at+":256MiB"), newFixed(t, 60*batchRecords, recordSize)
	n.createKept("d", s)
	r := newRank(t)
	for range 2 {
		for k := range 60 {
			if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
				t.Errorf("batch %d has other bytes", k)
			}
		}
	}
	st := n.status()
	if _, _, slabs, state := st.tier("nvme"); slabs == 0 || !strings.Contains(state, "no space left on device") {
		t.Errorf("nvme has %d slabs and is %q", slabs, state)
	}
	if _, _, _, state := st.tier("ram"); state != "ok" {
		t.Errorf("ram is %q", state)
	}
	if len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "nvme") {
		t.Errorf("warnings: %q", st.Warnings)
	}
	n.loggedOnce("level=WARN", "nvme tier makes way", "no space left on device")
	if st.Counters.OpenErrors != 0 {
		t.Errorf("%d opens failed", st.Counters.OpenErrors)
	}
}

// A disk that takes nothing more, whatever the reason, is no other case.
func TestNVMeThatRefusesWrites(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	disk := newTmpfs(t, p, "200m")
	p.at = disk + "/slabs"
	n, s := p.start("--ram", "16MiB", "--nvme", p.at+":100MiB"), newFixed(t, 60*batchRecords, recordSize)
	n.createKept("d", s)
	sh(t, `chattr +i "$1"`, p.at)
	r := newRank(t)
	for k := range 60 {
		if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
			t.Errorf("batch %d has other bytes", k)
		}
	}
	if _, _, _, state := n.status().tier("nvme"); !strings.Contains(state, "operation not permitted") {
		t.Errorf("nvme is %q", state)
	}
}

// One of two disks dies: what was on it is fetched again, the other one serves
// on, and status says which it is and why it is not used.
func TestOneDiskDies(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	disk := newDisk(t, p, 96)
	dying := disk + "/slabs"
	n := p.start("--ram", "16MiB", "--nvme", dying+":48MiB", "--nvme", p.at+":48MiB")
	s := newFixed(t, 60*batchRecords, recordSize)
	n.createKept("d", s)
	r := newRank(t)
	all := func(when string) {
		for k := range 60 {
			if r.batch(n.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
				t.Errorf("%s: batch %d has other bytes", when, k)
			}
		}
	}
	all("before")
	all("again")
	before := n.status()
	for _, dir := range []string{dying, p.at} {
		if d := before.disk(dir); d.Slabs < 2 || d.State != "ok" || d.Budget == 0 || d.Used == 0 {
			t.Errorf("before, %s: %+v", dir, d)
		}
	}
	shutDown(t, disk)
	all("afterwards")
	all("afterwards again")
	after := n.status()
	if d := after.disk(dying); d.State == "ok" || d.Failed == 0 {
		t.Errorf("the dead disk: %+v", d)
	}
	if d := after.disk(p.at); d.State != "ok" || d.Slabs < 2 {
		t.Errorf("the other one: %+v", d)
	}
	if w := strings.Join(after.Warnings, "\n"); !strings.Contains(w, dying) || strings.Contains(w, p.at) {
		t.Errorf("warnings: %q", after.Warnings)
	}
	if text := n.ok("status").out; !strings.Contains(text, dying) || !strings.Contains(text, p.at) {
		t.Errorf("status has not both directories:\n%s", text)
	}
	if after.Counters.OpenErrors != 0 {
		t.Errorf("%d opens failed", after.Counters.OpenErrors)
	}
}

// shutDown makes an ext4 answer everything with an error from now on.
func shutDown(t *testing.T, disk string) {
	t.Helper()
	const request, noFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	f, err := os.Open(disk)
	must(t, err)
	defer f.Close()
	must(t, unix.IoctlSetPointerInt(int(f.Fd()), request, noFlush))
}

// A slab on NVMe that is not what it was is never served.
func TestDamagedSlab(t *testing.T) {
	t.Parallel()
	p, s := newNode(t), newFixed(t, 30*batchRecords, recordSize)
	args := []string{"--ram", "16MiB", "--nvme", p.at + ":100MiB"}
	n := p.start(args...)
	n.createKept("d", s)
	r := newRank(t)
	for k := range 30 {
		r.batch(n.batch("d", 0, k))
	}
	n.stop()
	slabs, err := filepath.Glob(p.at + "/*.slab")
	must(t, err)
	if len(slabs) < 3 {
		t.Fatalf("%d slabs on nvme", len(slabs))
	}
	flip(t, slabs[0], 5000)
	must(t, os.Truncate(slabs[1], 1000))
	must(t, os.WriteFile(p.at+"/.part-77", []byte("left by a crash"), 0o600))
	must(t, os.WriteFile(p.at+"/mine", []byte("not a slab"), 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(p.at, strings.Repeat("0", 32)+"-0-0-10-0000000000000000.slab")))
	next := p.start(args...)
	for k := range 30 {
		if r.batch(next.batch("d", 0, k)) != sumOf(s.all(k*batchRecords, (k+1)*batchRecords)) {
			t.Errorf("batch %d has other bytes", k)
		}
	}
	if got := next.logged("level=WARN", "nvme slab discarded", filepath.Base(slabs[0]), "checksum"); got != 1 {
		t.Errorf("%d lines in the log name the damaged slab, want 1", got)
	}
	if w := next.status().Warnings; len(w) != 1 || !strings.Contains(w[0], "checksum") {
		t.Errorf("warnings: %q", w)
	}
	if got := read(t, p.at+"/mine"); string(got) != "not a slab" {
		t.Error("a file that is not the daemon's was touched")
	}
}

func flip(t *testing.T, path string, at int64) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1}, at)
	must(t, err)
}

// stateOnTmpfs is a node whose state is on a small disk of its own.
func stateOnTmpfs(t testing.TB) (p *node, disk string) {
	t.Helper()
	p = newNode(t)
	disk = newTmpfs(t, p, "12m")
	p.state = disk + "/state"
	p.Options("--state", p.state)
	return p, disk
}

// Without room in the state directory nothing can be registered, and nothing
// else is the worse for it.
func TestFullStateDirectory(t *testing.T) {
	t.Parallel()
	p, disk := stateOnTmpfs(t)
	n, s := p.start(), newLines(t, 1000)
	n.create("d", s, "--batch", "50")
	before := entries(p.state + "/indexes")
	filler := fillUp(t, disk)
	for what, args := range map[string][]string{
		"create":  {"dataset", "create", "e", "--source", newLines(t, 20000).uri},
		"refresh": {"dataset", "refresh", "d"},
	} {
		if got := n.cli(args...); got.code == 0 || !strings.Contains(got.err, "no space left on device") {
			t.Errorf("%s: %v", what, got)
		}
	}
	if after := entries(p.state + "/indexes"); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("what could not be made left %q", after)
	}
	if r := n.readView(t, "d"); !sameRecords(r.records(), s.records) {
		t.Error("other bytes with a full state directory")
	}
	must(t, os.Remove(filler))
	n.create("e", newLines(t, 100))
	n.stop()
	if again := p.start(); strings.Join(list(t, again.path()), " ") != "d e" {
		t.Errorf("after a restart there are %q", list(t, again.path()))
	} else {
		again.stop()
	}
}

// fillUp takes all room of a disk, to the last byte.
func fillUp(t testing.TB, disk string) (filler string) {
	t.Helper()
	filler = disk + "/filler"
	for size := 8 << 20; size > 0; size /= 2 {
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		must(t, err)
		_, _ = f.Write(make([]byte, size))
		f.Close()
	}
	return filler
}

// A daemon starts on a state directory that it had before, when its disk has become full since, and
// serves what it has. A second one is refused there, though the lock has no room for the holder's name.
func TestMountOnAFullStateDirectory(t *testing.T) {
	t.Parallel()
	p, disk := stateOnTmpfs(t)
	s := newLines(t, 1000)
	p.start().create("d", s, "--batch", "50")
	p.stop()
	must(t, os.Truncate(p.state+"/lock", 0)) // what it takes is taken by others
	filler := fillUp(t, disk)
	n := p.start()
	if r := n.readView(t, "d"); !sameRecords(r.records(), s.records) {
		t.Error("other bytes with a full state directory")
	}
	other := newNode(t)
	got := other.cli("mount", other.mount, "--ram", "64MiB", "--state", p.state)
	if got.code != 4 || !strings.Contains(got.err, "another rankfs uses it, or choose another with --state") {
		t.Errorf("a second daemon: %v", got)
	}
	must(t, os.Remove(filler))
	n.create("e", newLines(t, 100))
}

// A state directory that cannot be written: a daemon does not start on it, and
// one that runs goes on serving what it has.
func TestReadOnlyStateDirectory(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	disk := newTmpfs(t, p, "24m")
	p.state = disk + "/state"
	p.Options("--state", p.state)
	readOnly := func(flags uintptr) { must(t, unix.Mount("", disk, "", unix.MS_REMOUNT|flags, "size=24m")) }

	readOnly(unix.MS_RDONLY)
	got := p.refused("--state", p.state)
	for _, word := range []string{"state directory", disk, "read-only file system", "--state"} {
		if got.code != 1 || !strings.Contains(got.err, word) {
			t.Errorf("%v; want exit 1 and %q", got, word)
		}
	}
	got = p.cli("mount", p.mount, "--state", p.state, "--background")
	if got.code != 1 || !strings.Contains(got.err, "read-only file system") {
		t.Errorf("in the background: %v", got)
	}
	readOnly(0)

	n := p.start()
	s := newLines(t, 1000)
	n.create("d", s, "--batch", "50")
	turnReadOnly(t, disk)
	for what, args := range map[string][]string{
		"create":  {"dataset", "create", "e", "--source", newLines(t, 10).uri},
		"refresh": {"dataset", "refresh", "d"},
	} {
		if got := n.cli(args...); got.code == 0 || !strings.Contains(got.err, "read-only file system") {
			t.Errorf("%s: %v", what, got)
		}
	}
	if r := n.readView(t, "d"); !sameRecords(r.records(), s.records) {
		t.Error("other bytes with a read-only state directory")
	}
	n.stop()
}

// turnReadOnly covers a directory with a read-only mount of itself, which is what a
// lookup by its path finds from then on.
func turnReadOnly(t *testing.T, dir string) {
	t.Helper()
	sh(t, `mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"`, dir)
	t.Cleanup(func() { tryCommand("umount", dir) })
}

// With few descriptors the cache keeps fewer batches; with none an open waits
// for one that is closed, and the daemon lives.
func TestDescriptorsExhausted(t *testing.T) {
	t.Parallel()
	n, s := start(t), newFixed(t, 300*16, recordSize)
	n.create("d", s, "--batch", "16")
	r, other := newRank(t), newRank(t)
	r.batch(n.batch("d", 0, 0)) // the source is open now
	now := n.descriptors()
	var old unix.Rlimit
	must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, nil, &old))
	limit := unix.Rlimit{Cur: uint64(now + 12), Max: old.Max}
	must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &limit, nil))
	want := func(k int) string { return sumOf(s.all(16*k, 16*k+16)) }
	for k := range 300 {
		if r.batch(n.batch("d", 0, k)) != want(k) {
			t.Errorf("batch %d has other bytes", k)
		}
	}
	held := 0
	for waiting := false; !waiting; held++ {
		if held > 40 {
			t.Fatal("40 batches are open with 12 descriptors")
		}
		r.send(order{Do: "open", Name: fmt.Sprint(held), Path: n.batch("d", 0, 2*held)})
		eventually.True(t, "the open is answered, or waits with all descriptors taken, which the log says", func() bool {
			waiting = n.descriptors() >= now+11 && n.logged("a batch of 65536 bytes lacks a file") > 0
			return waiting || r.answered()
		})
		if !waiting {
			must(t, r.receive().err())
		}
	}
	limit.Cur += 4
	must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &limit, nil))
	if a := r.receive(); a.Errno != "" {
		t.Errorf("an open that waited for a descriptor: %+v", a)
	}
	for i := range held {
		if r.do("read", fmt.Sprint(i)).Sum != want(2*i) {
			t.Errorf("batch %d has other bytes", 2*i)
		}
		r.do("close", fmt.Sprint(i))
	}
	must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &old, nil))
	if other.batch(n.batch("d", 0, 299)) != want(299) {
		t.Error("other bytes afterwards")
	}
	eventually.True(t, "no handle is left", func() bool { return n.status().Counters.OpenHandles == 0 })
	if got := n.logged("EIO") + n.logged("input/output"); got != 0 {
		t.Errorf("%d lines in the log say EIO", got)
	}
}

// More batches fit into memory and on disk than the daemon may have descriptors:
// it keeps fewer open, whatever their sizes, and some for itself, so it answers.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	many := rounds(1200, 600)
	p, s := newNode(t), newFixed(t, many, recordSize)
	args := []string{"--ram", "64MiB", "--nvme", p.at + ":64MiB"}
	n := p.start(args...)
	n.createKept("d", s, "--batch", "1")
	n.ok("warm", "d")
	r := newRank(t)
	read := func(n *node, batch int) {
		t.Helper()
		view := fmt.Sprintf("d@batch=%d", batch)
		for k := range many / batch {
			if r.batch(n.batch(view, 0, k)) != sumOf(s.all(batch*k, batch*k+batch)) {
				t.Errorf("%s: batch %d has other bytes", view, k)
			}
		}
		if c := n.status().Counters; c.OpenErrors != 0 {
			t.Errorf("%s: %d opens failed", view, c.OpenErrors)
		}
	}
	few := func(n *node) {
		limit := unix.Rlimit{Cur: 300, Max: 300}
		must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &limit, nil))
	}
	few(n)
	read(n, 2)
	read(n, 3)
	read(n, 2)
	n.ok("cache", "evict", "d@batch=2")
	n.ok("cache", "evict", "d@batch=3")
	n.ok("cache", "policy", "all-disk") // else all of it stays in memory
	eventually.True(t, "there are more slabs on disk than descriptors", func() bool {
		read(n, 1)
		_, _, slabs, _ := n.status().tier("nvme")
		return slabs > 300
	})
	n.stop()

	n = p.start(args...)
	few(n)
	if _, _, slabs, _ := n.status().tier("nvme"); slabs < 300 {
		t.Errorf("%d slabs on disk are no more than there are descriptors", slabs)
	}
	read(n, 1)
	read(n, 1)
}

// Memory is not bounded by the daemon's descriptors: all batches of a dataset are
// in it, small or large ones, and any is opened, read and mapped.
func TestMoreBatchesThanDescriptors(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4 << 10, 200 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			const many, descriptors = 600, 250
			n, s := start(t, "--ram", "256MiB"), newFixed(t, many, size)
			n.create("d", s, "--batch", "1")
			limit := unix.Rlimit{Cur: descriptors, Max: descriptors}
			must(t, unix.Prlimit(n.PID(), unix.RLIMIT_NOFILE, &limit, nil))
			n.ok("warm", "d")
			r := newRank(t)
			for round := range 2 {
				if _, _, slabs, state := n.status().tier("ram"); slabs < many || state != "ok" {
					t.Errorf("round %d: %d slabs in memory, want %d; it is %s", round, slabs, many, state)
				}
				for i := range many {
					k := i * 7 % many
					if r.batch(n.batch("d", 0, k)) != sumOf(s.records[k]) {
						t.Errorf("batch %d has other bytes", k)
					}
				}
			}
			r.open("kept", n.batch("d", 0, 17))
			r.do("map", "kept")
			r.do("close", "kept")
			n.ok("cache", "evict", "d")
			for k := range many {
				if r.batch(n.batch("d", 0, k)) != sumOf(s.records[k]) {
					t.Errorf("batch %d has other bytes after an eviction", k)
				}
			}
			if r.do("sum", "kept").Sum != sumOf(s.records[17]) {
				t.Error("a mapped batch has other bytes after an eviction")
			}
			if c := n.status().Counters; c.OpenErrors != 0 || c.BatchReads != 0 {
				t.Errorf("%d opens failed, %d reads came to the daemon", c.OpenErrors, c.BatchReads)
			}
		})
	}
}

// descriptors is how many the daemon has.
func (n *node) descriptors() int {
	return len(entries(fmt.Sprintf("/proc/%d/fd", n.PID())))
}
