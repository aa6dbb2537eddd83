package pressure

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta/mountinfo"
	"rankfs/test/eventually"
)

const (
	prefix = "rankfs-pressure-test-"
	mib    = 1 << 20
	limit  = 128 * mib // of a test's group
)

// A cache whose budget is twice what its group may have fills what it is told
// to, gives it up while other processes in the group grow, takes it again when they are
// gone, and the kernel kills none of them.
func TestCgroup(t *testing.T) {
	c := newChild(t, "obey", nil)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("the child: %v\n%s", err, out)
	}
	if n := c.killed(t); n != 0 {
		t.Errorf("%d were killed", n)
	}
	t.Logf("%s", out)
}

// The same without heed to what it is told ends at the limit, so the test
// before this one can fail.
func TestCgroupLimits(t *testing.T) {
	c := newChild(t, "defy", nil)
	out, err := c.CombinedOutput()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the child: %v, it should have been killed\n%s", err, out)
	}
	if n := c.killed(t); n != 1 {
		t.Errorf("%d were killed", n)
	}
}

// Slabs that a process outside of the group filled are no part of what the group uses:
// what the cache gives up of them is no room for others.
func TestCgroupOfOthersPages(t *testing.T) {
	fd, err := unix.MemfdCreate("inherited", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	inherited := os.NewFile(uintptr(fd), "inherited")
	defer inherited.Close()
	if err := unix.Fallocate(fd, 0, 0, limit/2); err != nil {
		t.Fatal(err)
	}
	c := newChild(t, "inherit", inherited)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("the child: %v\n%s", err, out)
	}
	if n := c.killed(t); n != 0 {
		t.Errorf("%d were killed", n)
	}
	t.Logf("%s", out)
}

// A child is this program again, in a group of its own below one with a limit.
type child struct {
	*exec.Cmd
	group string
	kind  hierarchy
}

// A hierarchy is what a test does in one version of cgroups.
type hierarchy struct{ mount, limit, kills string }

func findHierarchy(t *testing.T) hierarchy {
	mounts, err := mountinfo.Read()
	if err != nil {
		t.Fatal(err)
	}
	if mount, _, ok := findMount(mounts, "cgroup"); ok {
		return hierarchy{"/" + mount, version1.limits[0], "memory.oom_control"}
	}
	mount, _, ok := findMount(mounts, "cgroup2")
	if !ok {
		t.Fatal("no cgroups are mounted that limit memory")
	}
	return hierarchy{"/" + mount, version2.limits[0], "memory.events"}
}

// newChild makes a group with a limit and one without in it. What an earlier
// test left, if it was killed, is removed.
func newChild(t *testing.T, does string, inherited *os.File) child {
	kind := findHierarchy(t)
	removeLeft(kind.mount)
	group := filepath.Join(kind.mount, prefix+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(filepath.Join(group, "inner"), 0o755); err != nil {
		t.Fatalf("make a cgroup: %v (run as root)", err)
	}
	t.Cleanup(func() {
		if err := remove(group); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, kind.limit), []byte(strconv.Itoa(limit)), 0); err != nil {
		t.Fatal(err)
	}
	c := child{exec.Command("/proc/self/exe", inside, does, group), group, kind}
	runtime.LockOSThread() // the child dies with the thread that started it
	t.Cleanup(runtime.UnlockOSThread)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if inherited != nil {
		c.ExtraFiles = []*os.File{inherited}
	}
	return c
}

// killed is how many processes of the group the kernel has killed.
func (c child) killed(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.group, "inner", c.kind.kills))
	if err != nil {
		t.Fatal(err)
	}
	n, ok := field(b, "oom_kill")
	if !ok {
		t.Fatalf("%s says nothing of oom_kill: %s", c.kind.kills, bytes.TrimSpace(b))
	}
	return n
}

func removeLeft(mount string) {
	left, _ := filepath.Glob(filepath.Join(mount, prefix+"*"))
	for _, group := range left {
		pid := strings.TrimPrefix(filepath.Base(group), prefix)
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			_ = remove(group)
		}
	}
}

// remove removes a group, which takes the kernel a moment after its last
// process has ended.
func remove(group string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return eventually.Until(ctx, func() error {
		_ = unix.Rmdir(filepath.Join(group, "inner"))
		if err := unix.Rmdir(group); err != nil && err != unix.ENOENT {
			return &os.PathError{Op: "remove", Path: group, Err: err}
		}
		return nil
	})
}
