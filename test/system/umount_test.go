package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// umount of a mount in use fails, says who uses it and what can be done, and
// changes nothing. Detached lazily, it ends with its last user, and until then says which
// process has the state.
func TestUmountWhileBusy(t *testing.T) {
	t.Parallel()
	n, s := start(t), newLines(t, 100)
	n.create("d", s, "--batch", "10")
	r := newRank(t)
	r.open("a", n.batch("d", 0, 3))
	got := n.cli("umount", n.mount)
	for _, word := range []string{fmt.Sprintf("pid %d", r.pid), "open file", "--lazy"} {
		if got.code != 4 || !strings.Contains(got.err, word) {
			t.Errorf("umount while busy: %vwant exit 4 and %q", got, word)
		}
	}
	if r.batch(n.batch("d", 0, 4)) != sumOf(s.all(40, 50)) {
		t.Error("other bytes after an umount that was refused")
	}

	n.ok("umount", "--lazy", n.mount)
	if left := mountsBelow(n.dir); len(left) != 0 {
		t.Errorf("detached, but there is %v", left)
	}
	if got := n.refused(); got.code != 4 || !strings.Contains(got.err, fmt.Sprintf("process %d", n.PID())) {
		t.Errorf("mounted while a detached mount has the state: %vwant exit 4 and process %d", got, n.PID())
	}
	if got := r.errno("open", n.batch("d", 0, 4)); got != "ENOENT" {
		t.Errorf("open below a detached mount: %q, want ENOENT", got)
	}
	if r.do("read", "a").Sum != sumOf(s.all(30, 40)) {
		t.Error("other bytes through what is open in a detached mount")
	}
	r.do("map", "a")
	r.do("close", "a")
	if r.do("sum", "a").Sum != sumOf(s.all(30, 40)) {
		t.Error("other bytes in what is mapped in a detached mount")
	}
	r.do("unmap", "a")
	n.clean(n.AwaitEnd())
}

// A rank that has closed its batch and still maps it uses the mount too.
func TestUmountWhileMapped(t *testing.T) {
	t.Parallel()
	n, s := start(t), newFixed(t, batchRecords, recordSize)
	n.create("d", s)
	r := newRank(t)
	r.open("a", n.batch("d", 0, 0))
	r.do("map", "a")
	r.do("close", "a")
	got := n.cli("umount", n.mount)
	if got.code != 4 || !strings.Contains(got.err, fmt.Sprintf("pid %d", r.pid)) || !strings.Contains(got.err, "mapped file") {
		t.Errorf("umount: %vwant exit 4, the pid and what it does", got)
	}
	if r.do("sum", "a").Sum != sumOf(s.all(0, batchRecords)) {
		t.Error("other bytes after an umount that was refused")
	}
	r.do("unmap", "a")
}

// A signal ends the daemon even if ranks have files open, and takes nothing
// from them.
func TestSignalWithOpenHandles(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := newNode(t)
			n, s := p.start("--nvme", p.at+":64MiB"), newFixed(t, 4*batchRecords, recordSize)
			n.create("d", s)
			open, mapped := newRank(t), newRank(t)
			open.open("a", n.batch("d", 0, 0))
			mapped.open("b", n.batch("d", 0, 1))
			mapped.do("map", "b")
			n.Signal(signal)
			n.clean(n.AwaitEnd())
			if left := mountsBelow(n.dir); len(left) != 0 {
				t.Errorf("the daemon has ended and there is %v", left)
			}
			if open.do("read", "a").Sum != sumOf(s.all(0, batchRecords)) || mapped.do("sum", "b").Sum != sumOf(s.all(batchRecords, 2*batchRecords)) {
				t.Error("other bytes after the end of the daemon")
			}
			next := p.start("--nvme", p.at+":64MiB") // at once, on the same place
			if mapped.batch(next.batch("d", 0, 1)) != sumOf(s.all(batchRecords, 2*batchRecords)) {
				t.Error("other bytes from the next daemon")
			}
		})
	}
}

// The second daemon on a mount says why it cannot start, and the first one does
// not notice.
func TestTwoDaemons(t *testing.T) {
	t.Parallel()
	p, other := newNode(t), newNode(t)
	first, s := p.start("--nvme", p.at+":64MiB"), newLines(t, 100)
	first.create("d", s, "--batch", "10")
	r := newRank(t)
	r.open("a", first.batch("d", 0, 0))
	holder := fmt.Sprintf("the rankfs of process %d", first.PID())
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"one state directory", []string{other.mount, "--state", p.state, "--run", p.run}, 4, []string{"state directory", p.state, holder, "--state"}},
		{"one state directory, other run directories", []string{other.mount, "--state", p.state}, 4, []string{"state directory", p.state, holder}},
		{"one nvme directory", []string{other.mount, "--state", other.state, "--nvme", p.at + ":64MiB"}, 4, []string{"nvme directory", p.at, "another rankfs"}},
		{"one mount point", []string{p.mount, "--state", other.state, "--run", p.run}, 4, []string{p.mount, "rankfs umount"}},
		{"one mount point, other run directories", []string{p.mount, "--state", other.state}, 4, []string{p.mount, "rankfs umount"}},
		{"a mount point inside", []string{first.path("d"), "--state", other.state}, 2, []string{"inside the rankfs mount"}},
	} {
		got := other.cli(append([]string{"mount", "--ram", "64MiB"}, tt.args...)...)
		for _, word := range tt.want {
			if got.code != tt.code || !strings.Contains(got.err, word) {
				t.Errorf("%s: %v, want exit %d and %q", tt.name, got, tt.code, word)
			}
		}
	}
	if left := mountsBelow(other.dir); len(left) != 0 {
		t.Errorf("a daemon that did not start left %v", left)
	}
	if r.do("read", "a").Sum != sumOf(s.all(0, 10)) || r.batch(first.batch("d", 0, 9)) != sumOf(s.all(90, 100)) {
		t.Error("the first daemon has other bytes")
	}
	if first.status().PID != first.PID() {
		t.Error("the first daemon does not answer")
	}
	r.do("close", "a")
}

// What cannot be mounted is refused with the next step to take.
func TestMountIsRefused(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		name  string
		mount string
		args  []string
		code  int
		want  string
	}{
		{"no such directory", p.dir + "/none", nil, 3, "mkdir -p"},
		{"a file", file, nil, 2, "not a directory"},
		{"too little memory", p.mount, []string{"--ram", "1MiB"}, 2, "16MiB"},
		{"a negative size", p.mount, []string{"--ram", "-1"}, 2, "ram"},
		{"no unit", p.mount, []string{"--ram", "64"}, 2, "unit"},
		{"a huge size", p.mount, []string{"--ram", "99999999TiB"}, 2, "ram"},
		{"nvme without a size", p.mount, []string{"--nvme", p.at}, 2, "DIR:SIZE"},
		{"nvme of nothing", p.mount, []string{"--nvme", p.at + ":0B"}, 2, "budget"},
		{"nvme on a disk that is not there", p.mount, []string{"--nvme", p.dir + "/disk/x:1GiB"}, 3, "mkdir -p " + p.dir + "/disk"},
		{"pool-nvme on a disk that is not there", p.mount, []string{"--pool-ram", "16MiB", "--pool-nvme", p.dir + "/disk/x:1GiB"}, 3, "mkdir -p " + p.dir + "/disk"},
		{"nvme in a file", p.mount, []string{"--nvme", file + ":1GiB"}, 2, file},
		{"state in a file", p.mount, []string{"--state", file}, 2, "--state"},
		{"an odd umask", p.mount, []string{"--umask", "9"}, 2, "octal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := p.cli(append([]string{"mount", tt.mount, "--state", p.state, "--ram", "64MiB"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.err, tt.want) {
				t.Errorf("%v; want exit %d and %q", got, tt.code, tt.want)
			}
			if left := mountsBelow(p.dir); len(left) != 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

// An end by umount leaves no mount, process, file or memory behind.
func TestCleanExitLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	n, s := p.start("--ram", "16MiB", "--nvme", p.at+":64MiB"), newFixed(t, 40*batchRecords, recordSize)
	n.create("d", s)
	r := newRank(t)
	for k := range 40 {
		r.batch(n.batch("d", 0, k))
	}
	pid := n.PID()
	n.stop() // looks at mounts, the run directory and unfinished slabs
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Errorf("process %d lives", pid)
	}
	for _, e := range entries(p.at) {
		if e != ".lock" && e != ".index" && !strings.HasSuffix(e, ".slab") {
			t.Errorf("in the nvme directory there is %s", e)
		}
	}
	if got := entries(p.state); strings.Join(got, " ") != "indexes lock node raft trust" {
		t.Errorf("in the state directory there is %q", got)
	}
	if got := entries(p.state + "/indexes"); len(got) != 1 {
		t.Errorf("indexes of one dataset: %q", got)
	}
}

// A mount in the background is ready when the command returns, and says what
// was wrong if there is none. Its paths are those of the directory that it is begun in.
func TestBackgroundMount(t *testing.T) {
	t.Parallel()
	n, s := newNode(t), newLines(t, 100)
	sh(t, `cd "$1"; "$2" --run run mount mnt --state state --ram 16MiB --background`, n.dir, rankfs)
	t.Cleanup(func() { tryCommand("umount", "-l", n.mount) }) // if the test fails
	n.create("d", s, "--batch", "10")
	if newRank(t).batch(n.batch("d", 0, 2)) != sumOf(s.all(20, 30)) {
		t.Error("other bytes")
	}
	if got := n.cli("mount", n.mount, "--state", n.state, "--background"); got.code != 4 || !strings.Contains(got.err, n.mount) {
		t.Errorf("a second one: %v, want exit 4", got)
	}
	n.ok("umount", n.mount)
	n.clean(nil)
}
