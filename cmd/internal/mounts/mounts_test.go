package mounts_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/mounts"
	"rankfs/meta"
	"rankfs/meta/mountinfo"
	"rankfs/test/eventually"
)

// runDir is a run directory with a short path, for its sockets.
func runDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestRegisterAndList(t *testing.T) {
	run := filepath.Join(runDir(t), "made", "here")
	if live, err := mounts.List(run); len(live) != 0 || err != nil {
		t.Fatalf("List of no directory = %v, %v", live, err)
	}
	b, err := mounts.Register(run, "/mnt/b", "/state/b")
	if err != nil {
		t.Fatal(err)
	}
	a, err := mounts.Register(run, "/mnt/a", "/state/a")
	if err != nil {
		t.Fatal(err)
	}
	if live, err := mounts.List(run); err != nil || !reflect.DeepEqual(live, []mounts.Entry{a.Entry, b.Entry}) {
		t.Errorf("List = %v, %v", live, err)
	}
	if _, err := mounts.Register(run, "/mnt/a", "/state/c"); !errors.Is(err, meta.ErrExist) {
		t.Errorf("second Register = %v", err)
	}
	if err := b.Share(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]os.FileMode{run: 0o755, a.Socket: 0o600, b.Socket: 0o666} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v", name, info.Mode(), err)
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if live, err := mounts.List(run); len(live) != 0 || err != nil {
		t.Errorf("List after Close = %v, %v", live, err)
	}
	if left, _ := filepath.Glob(run + "/*.*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// deadPID is of a process that was and is no more.
func deadPID(t *testing.T) int {
	t.Helper()
	c := exec.Command("/proc/self/exe", "-test.run=^$")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return c.Process.Pid
}

func TestDeadEntriesAreRemoved(t *testing.T) {
	run := runDir(t)
	dead := map[string]mounts.Entry{
		"gone":   {PID: deadPID(t), Started: 1, Mount: "/mnt/gone", Socket: run + "/gone.sock"},
		"reused": {PID: os.Getpid(), Started: 1, Mount: "/mnt/reused", Socket: run + "/reused.sock"},
	}
	for name, e := range dead {
		if err := mounts.Write(filepath.Join(run, name+".json"), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(run+"/torn.json", []byte(`{"pid":`), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := mounts.Register(run, "/mnt/live", "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if got, err := mounts.List(run); err != nil || !slices.Equal(got, []mounts.Entry{live.Entry}) {
		t.Errorf("List = %v, %v", got, err)
	}
	if left, _ := filepath.Glob(run + "/*.json"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A daemon that has its entry but no socket yet, or no more, is not listed
// and not swept away.
func TestDaemonWithoutSocketKeepsItsEntry(t *testing.T) {
	run := runDir(t)
	r, err := mounts.Register(run, "/mnt/a", "/state")
	if err != nil {
		t.Fatal(err)
	}
	r.Listener.Close()
	if got, err := mounts.List(run); len(got) != 0 || err != nil {
		t.Errorf("List = %v, %v", got, err)
	}
	if left, _ := filepath.Glob(run + "/*.json"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestRegisterTakesOverFromTheDead(t *testing.T) {
	run := runDir(t)
	r, err := mounts.Register(run, "/mnt/a", "/state")
	if err != nil {
		t.Fatal(err)
	}
	old := r.Entry
	r.Listener.Close()
	files, _ := filepath.Glob(run + "/*.json")
	old.PID = deadPID(t)
	if err := errors.Join(mounts.Write(files[0], old), os.WriteFile(old.Socket, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err = mounts.Register(run, "/mnt/a", "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := mounts.List(run); err != nil || !slices.Equal(got, []mounts.Entry{r.Entry}) {
		t.Errorf("List = %v, %v", got, err)
	}
}

func TestRegisterRefuses(t *testing.T) {
	open := runDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	others := runDir(t)
	if err := os.Chown(others, 4711, -1); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(runDir(t), strings.Repeat("x", 100))
	file := filepath.Join(runDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		open:   "chmod 755",
		others: "is of user 4711, and this is user 0",
		long:   "longer than 107 bytes",
		file:   "not a directory",
	} {
		if _, err := mounts.Register(dir, "/mnt", "/state"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Register in %s = %v, want %q", dir, err, want)
		}
	}
}

// Resolve must find a mount through links, and must not look below it: the
// link below "mount" would lead it astray.
func TestResolveStopsAtAMount(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	join := func(name string) string { return filepath.Join(top, name) }
	err = errors.Join(
		os.MkdirAll(join("mount"), 0o700),
		os.MkdirAll(join("plain/deep"), 0o700),
		os.Symlink("/etc", join("mount/inside")),
		os.Symlink("mount", join("relative")),
		os.Symlink(join("relative"), join("plain/absolute")),
		os.Symlink("../../mount", join("plain/deep/up")),
		os.Symlink("loop", join("loop")),
	)
	if err != nil {
		t.Fatal(err)
	}
	table := []mountinfo.Mount{{Device: "0:9", Point: join("mount"), Type: mountinfo.FSType}}
	for path, want := range map[string]string{
		"mount":               "mount",
		"relative":            "mount",
		"plain/absolute":      "mount",
		"plain/deep/up":       "mount",
		"mount/inside/x":      "mount/inside/x",
		"relative/inside/x":   "mount/inside/x",
		"plain/none":          "plain/none",
		"plain/none/deeper":   "plain/none/deeper",
		"plain/deep/up/a/b/c": "mount/a/b/c",
	} {
		if got, err := mounts.ResolveIn(table, join(path)); err != nil || got != join(want) {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	if got, err := mounts.ResolveIn(table, join("loop")); err == nil {
		t.Errorf("loop: got %s", got)
	}
	if got, err := mounts.ResolveIn(nil, "/"); err != nil || got != "/" {
		t.Errorf("root: got %s, %v", got, err)
	}
}

func TestAroundWantsWholeNames(t *testing.T) {
	table := []mountinfo.Mount{{ID: 1, Device: "0:9", Point: "/mnt/a", Type: mountinfo.FSType}, {ID: 2, Device: "0:10", Point: "/mnt", Type: "tmpfs"}}
	for path, want := range map[string]bool{"/mnt/a": true, "/mnt/a/b": true, "/mnt/ab": false, "/mnt": false, "/": false} {
		if _, got := mounts.Around(table, path); got != want {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

func TestHoldersOfAMount(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := mountinfo.Read()
	if err != nil {
		t.Fatal(err)
	}
	m := mountinfo.Mount{ID: -2, Device: "999:999"}
	if found, more := mounts.Holders(m); len(found) != 0 || more {
		t.Errorf("holders of nothing: %v, %v", found, more)
	}
	for at := dir; m.ID == -2; at = filepath.Dir(at) {
		if top, ok := mountinfo.At(table, at); ok {
			m = top
		}
	}
	if found, _ := mounts.Holders(m); len(found) == 0 {
		t.Errorf("no process is said to hold %v, but this one does", m)
	}
}

// mounted is a file system that is mounted on a directory now.
func mounted(t *testing.T, dir string) mountinfo.Mount {
	t.Helper()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	table, err := mountinfo.Read()
	m, ok := mountinfo.At(table, dir)
	if !ok || err != nil {
		t.Fatalf("mount of %s: %v, %v", dir, ok, err)
	}
	return m
}

func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	m := mounted(t, dir)
	other := exec.Command("unshare", "--mount", "sh", "-c", "echo; read end")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err = errors.Join(err, unix.Unmount(dir, 0)); err != nil {
		t.Fatal(err)
	}
	// Other tests may have got namespaces with this mount in the meantime.
	here := func(h mounts.Holder) bool { return h.PID == other.Process.Pid }
	if found := mounts.Elsewhere(m); !slices.ContainsFunc(found, here) {
		t.Errorf("the mount is still seen by %v, want pid %d among them", found, other.Process.Pid)
	}
	in.Close()
	_ = other.Wait() // read fails at the end of its input
	if found := mounts.Elsewhere(m); slices.ContainsFunc(found, here) {
		t.Errorf("the mount is still seen by %v, one of which has ended", found)
	}
}

// A file system is in use while it says how large it is. Who unmounts it does not see that.
func TestUsesThatPass(t *testing.T) {
	dir := t.TempDir()
	var asking sync.WaitGroup
	defer asking.Wait()
	ended := make(chan struct{})
	defer close(ended)
	for range 4 {
		asking.Go(func() {
			var s unix.Statfs_t
			for {
				select {
				case <-ended:
					return
				default:
					for range 50 {
						_ = unix.Statfs(dir, &s) // of what is mounted there at the moment
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	for range 400 {
		m := mounted(t, dir)
		if err := mounts.Detach(m, false); err != nil {
			_ = unix.Unmount(dir, unix.MNT_DETACH)
			t.Fatal(err)
		}
	}
}

func TestUnmountRefusesOtherMounts(t *testing.T) {
	run := runDir(t)
	for dir, want := range map[string]error{"/proc": meta.ErrInvalid, t.TempDir(): meta.ErrNotExist} {
		if _, err := mounts.Unmount(t.Context(), run, dir, false); !errors.Is(err, want) {
			t.Errorf("unmount %s: %v, want %v", dir, err, want)
		}
	}
	if done, err := mounts.Clean(t.TempDir()); done || err != nil {
		t.Errorf("Clean of a directory = %v, %v", done, err)
	}
}

// The daemon before has ended, and its parent has not collected it: its pid
// still stands in /proc, with the time at which it began.
func TestEndedAndNotCollected(t *testing.T) {
	run := runDir(t)
	c := exec.Command("/proc/self/exe", "-test.run=^$")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	old := entryOf(t, c.Process.Pid, run)
	eventually.True(t, "the process has ended, with all its threads", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", old.PID))
		return len(threads) == 1 && state(t, old.PID) == "Z"
	})
	if _, ends := mounts.Ending(run, old.Mount, "/other"); ends {
		t.Error("a process that has ended is said to be ending")
	}
	r, err := mounts.Register(run, old.Mount, old.State)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// A daemon that has begun to end is told from one that is gone, from one that
// lives and from one that is stopped.
func TestEnding(t *testing.T) {
	run := runDir(t)
	for _, row := range []struct {
		name   string
		leaves bool
		signal syscall.Signal
		state  string // of its first thread
	}{
		{"lives", false, 0, "S"},
		{"stopped", false, syscall.SIGSTOP, "T"},
		{"first thread has ended", true, 0, "Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := exec.Command("sleep", "600")
			if row.leaves {
				c = exec.Command("/proc/self/exe")
				c.Env = append(os.Environ(), leaverEnv+"=1")
			}
			c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer c.Wait()
			defer c.Process.Kill()
			old := entryOf(t, c.Process.Pid, run)
			if row.signal != 0 {
				c.Process.Signal(row.signal)
			}
			eventually.True(t, "its state is "+row.state, func() bool { return state(t, old.PID) == row.state })
			for _, at := range [][2]string{{old.Mount, "/other"}, {"/other", old.State}} {
				if _, ends := mounts.Ending(run, at[0], at[1]); ends != row.leaves {
					t.Errorf("Ending of mount %s, state %s is %v", at[0], at[1], ends)
				}
			}
			if _, ends := mounts.Ending(run, "/other", "/other"); ends {
				t.Error("the daemon of another mount is ending")
			}
			if _, err := mounts.Register(run, old.Mount, old.State); !errors.Is(err, meta.ErrExist) {
				t.Errorf("Register beside it: %v", err)
			}
			c.Process.Kill()
			c.Wait()
			if _, ends := mounts.Ending(run, old.Mount, old.State); ends {
				t.Error("a process that is gone is said to be ending")
			}
		})
	}
}

const leaverEnv = "MOUNTS_TEST_LEAVER"

// init makes the test binary a process whose first thread ends, and the others
// of the Go runtime stay.
func init() {
	if os.Getenv(leaverEnv) != "" {
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// entryOf writes the entry that a process would have as a daemon.
func entryOf(t *testing.T, pid int, run string) mounts.Entry {
	t.Helper()
	fields := stat(t, pid)
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	e := mounts.Entry{PID: pid, Started: started, Mount: "/mnt/old", State: "/state/old", Socket: run + "/old.sock"}
	if err := mounts.Write(filepath.Join(run, mounts.ID(e.Mount)+".json"), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// stat are the fields of /proc/PID/stat from the state on.
func stat(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

func state(t *testing.T, pid int) string { return stat(t, pid)[0] }
