package system_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rankfs/test/eventually"
)

// The unit is installed with the program's place in it, lets the daemon have the
// sockets that it needs, waits for the network, and is started again until it
// works.
func TestUnit(t *testing.T) {
	dir := t.TempDir()
	prefix := dir + "/opt/rankfs"
	if out, err := exec.Command("make", "-s", "-C", "../..", "install-unit", "DESTDIR="+dir, "PREFIX="+prefix).CombinedOutput(); err != nil {
		t.Fatalf("make install-unit: %v\n%s", err, out)
	}
	must(t, os.MkdirAll(prefix+"/bin", 0o755))
	must(t, os.WriteFile(prefix+"/bin/rankfs", nil, 0o755)) // systemd looks whether it could be executed
	// It says what it does not understand, and leaves it out, but it ends as if all were well.
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", dir+"/etc/systemd/system/rankfs@mnt-rankfs.service").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd says of the unit: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "etc/systemd/system/rankfs@.service"))
	must(t, err)
	unit := settings(string(text))
	for key, want := range map[string]string{
		"ExecStart":               prefix + "/bin/rankfs",
		"ExecStop":                prefix + "/bin/rankfs",
		"ExecStopPost":            "-" + prefix + "/bin/rankfs",
		"RestrictAddressFamilies": "AF_NETLINK",
		"After":                   "network-online.target",
		"Wants":                   "network-online.target",
		"Restart":                 "on-failure",
		"StartLimitIntervalSec":   "0",
	} {
		if !slices.Contains(unit[key], want) {
			t.Errorf("%s=%s, without %s", key, strings.Join(unit[key], " "), want)
		}
	}
	if strings.Contains(string(text), "/usr/local") {
		t.Errorf("another prefix is left in the unit:\n%s", text)
	}
}

// What the unit allows is enough for a daemon that reads what is another user's, whose
// batches ranks of users map, and that has a pool in which they change modes and times, and
// for the command that ends it, or says who is in its way. Without any one capability
// something of that fails, but for CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: it takes one of
// them to read the source.
func TestUnitsBounds(t *testing.T) {
	text, err := os.ReadFile("../../docs/rankfs@.service")
	must(t, err)
	unit := settings(string(text))
	capabilities := "-all"
	for _, name := range unit["CapabilityBoundingSet"] {
		capabilities += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	self, err := os.Executable()
	must(t, err)
	within := []string{"setpriv", "--bounding-set", capabilities, "--no-new-privs", self}
	t.Setenv(boundsEnv, string(text))
	n := newNode(t)
	n.Under(within...)
	n.startPool()
	if got := bounding(t, n.PID()); got > len(unit["CapabilityBoundingSet"]) { // a container has fewer itself
		t.Errorf("the daemon may have %d capabilities, of %q", got, unit["CapabilityBoundingSet"])
	}

	s := newLines(t, 40)
	must(t, os.Chown(s.path, 4711, 4711))
	must(t, os.Chmod(s.path, 0o600))
	n.create("d", s, "--batch", "5")
	one := newPerson(t, 65534, 65534)
	if r := one.does("cat", n.batch("d", 0, 1)); r.code != 0 || r.out != string(s.all(5, 10)) {
		t.Errorf("a batch: %v", r)
	}
	ranks := one.does("sh", "-ec", `python3 - "$1" <<-'END'
	import glob, mmap, os, sys
	for rank in "01":
	    if os.fork() == 0:
	        for name in sorted(glob.glob(f"{sys.argv[1]}/rank-{rank}/batch-*[0-9]")):
	            with open(name, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
	                sys.stdout.buffer.write(m)
	        sys.stdout.flush()
	        os._exit(0)
	    os.wait()
	END`, "sh", n.path("d@ranks=2,batch=20"))
	if ranks.code != 0 || ranks.out != string(s.all(0, 40)) {
		t.Errorf("two ranks that map batches: %v", ranks)
	}
	stage := n.mount + "/shuffle/job/stage"
	r := one.does("sh", "-ec", lay+`
		mkdir -p "$1"; echo maps=1 parts=2 > "$1/spec"
		lay "$1" .map-000000.0 one two
		chmod 640 "$1/.map-000000.0"
		touch -d @1 "$1/.map-000000.0"
		mv "$1/.map-000000.0" "$1/map-000000"
		cat "$1/part-000001"
		rm -r "$2"`, "sh", stage, n.mount+"/shuffle/job")
	if r.code != 0 || r.out != "two" {
		t.Errorf("the pool: %v", r)
	}
	eventually.Within(t, waitTime, "no file system of the job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
	umount := slices.Concat(within, []string{commands, "--run", n.run, "umount", n.mount})
	pid, end := one.holds(n.batch("d", 0, 1))
	if r := command(t, umount...); r.code != 4 || !strings.Contains(r.err, fmt.Sprintf("pid %d", pid)) {
		t.Errorf("umount while process %d has a batch open: %v", pid, r)
	}
	end()
	if r := command(t, umount...); r.code != 0 {
		t.Errorf("umount: %v", r)
	}
	n.clean(n.AwaitEnd())
}

// holds has a process of the person's have a file open until end is called.
func (p person) holds(file string) (pid int, end func()) {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", `exec 3<"$1"; echo; exec sleep 600`, "sh", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &p.who}
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, cmd.Start())
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.t.Cleanup(end)
	_, err = out.Read(make([]byte, 1))
	must(p.t, err)
	return cmd.Process.Pid, end
}

// A daemon that may not have a lease on files of users, as in most containers, could commit
// nothing of theirs, and readers of parts would wait for that: it is not mounted with a pool.
func TestPoolNeedsLeases(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Under("setpriv", "--bounding-set", "-lease", "--no-new-privs")
	if err := n.Try("--pool-ram", "16MiB"); err == nil {
		t.Fatal("it is mounted with a pool")
	}
	for _, word := range []string{"permission denied", "CAP_LEASE", "--cap-add LEASE", "without --pool-ram"} {
		if !strings.Contains(n.Log(), word) {
			t.Errorf("it does not say %q: %s", word, n.Log())
		}
	}
	if _, err := os.Stat(n.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a state directory: %v", err)
	}
	n.start() // without one it needs none
}

// bounding counts the capabilities that a process may ever have.
func bounding(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, after, _ := strings.Cut(string(status), "CapBnd:")
	set, err := strconv.ParseUint(strings.Fields(after)[0], 16, 64)
	must(t, err)
	return bits.OnesCount64(set)
}
