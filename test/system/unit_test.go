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

// What the unit allows is enough for a daemon that reads what is another user's and has a
// pool for users, and for the command that ends it.
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
	stage := n.mount + "/shuffle/job/stage"
	r := one.does("sh", "-ec", lay+`
		mkdir -p "$1"; echo maps=1 parts=2 > "$1/spec"
		lay "$1" .map-000000.0 one two
		mv "$1/.map-000000.0" "$1/map-000000"
		cat "$1/part-000001"
		rm -r "$2"`, "sh", stage, n.mount+"/shuffle/job")
	if r.code != 0 || r.out != "two" {
		t.Errorf("the pool: %v", r)
	}
	eventually.Within(t, waitTime, "no file system of the job is left", func() bool { return len(mountsBelow(n.state)) == 0 })
	if r := command(t, slices.Concat(within, []string{commands, "--run", n.run, "umount", n.mount})...); r.code != 0 {
		t.Errorf("umount: %v", r)
	}
	n.clean(n.AwaitEnd())
}

// A daemon that may not have a lease on files of users, as in most containers, could commit
// nothing of theirs, and who reads a part would wait for that: it is not mounted with a pool.
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
