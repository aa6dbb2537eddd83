package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"rankfs/cache/policy"
	"rankfs/cmd/internal/mounting"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/meta/mountinfo"
	"rankfs/test/eventually"
)

// TestMain makes this test binary the command itself, over a fake daemon, or
// over a real one where a script wants that.
func TestMain(m *testing.M) {
	command := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		p := &program{
			out: os.Stdout, err: &saidOnce{Writer: os.Stderr}, serve: serveFake,
			now: ticking(), finder: finder{run: os.Getenv("RUN"), stale: staleHere}, cores: 2,
		}
		if os.Getenv("REAL") != "" {
			p.serve, p.now = node.Run, time.Now
		}
		code := run(ctx, os.Args, p)
		stop()
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"rankfs": command, mounting.HelperName: command, mounting.UmountHelperName: command})
}

// A saidOnce ends a command that says one thing twice in its error and what is to be done.
type saidOnce struct {
	io.Writer
	clauses map[string]bool // of the error; nil: it has said none
}

func (w *saidOnce) Write(b []byte) (int, error) {
	if w.clauses == nil && strings.HasPrefix(string(b), "rankfs: ") {
		w.clauses = make(map[string]bool)
	}
	for _, clause := range clauses.Split(string(b), -1) {
		if w.clauses[clause] {
			fmt.Fprintf(w.Writer, "%q is said twice\n", clause)
			os.Exit(99)
		}
		if w.clauses != nil && len(clause) >= 16 {
			w.clauses[clause] = true
		}
	}
	return w.Writer.Write(b)
}

var clauses = regexp.MustCompile(`[:;,] |\n *`)

// staleHere is without what other tests on this machine leave for a moment.
func staleHere() []string {
	here := os.Getenv("WORK")
	return slices.DeleteFunc(mounts.Stale(), func(s string) bool { return !strings.HasPrefix(s, here) })
}

// ticking is a clock that goes on by 50 ms whenever it is looked at.
func ticking() func() time.Time {
	now := epoch.Add(2*time.Hour + 13*time.Minute)
	return func() time.Time { now = now.Add(50 * time.Millisecond); return now }
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"signal": sendSignal,
			"hold":   hold,
			"unhold": unhold,
			"exits":  exits,
			"await":  await,
			"ended":  ended,
		},
	})
}

// setup gives a script a run directory, whose path is short enough for
// sockets, and ends the daemons that the script leaves.
func setup(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "rankfs")
	if err != nil {
		return err
	}
	env.Setenv("RUN", dir)
	env.Setenv("TERM", "dumb")
	env.Setenv("POLICIES", strconv.Itoa(len(policy.Names())))
	env.Setenv("GORACE", "atexit_sleep_ms=0") // or every command takes a second under -race
	for _, name := range []string{"a", "b", "fuse", "refused", "dies"} {
		if err := os.Mkdir(filepath.Join(env.WorkDir, name), 0o755); err != nil {
			return err
		}
	}
	env.Defer(func() {
		running, _ := mounts.List(dir)
		for _, e := range running {
			_ = unix.Kill(e.PID, unix.SIGCONT)
			_ = unix.Kill(e.PID, unix.SIGKILL)
			_ = e.Wait(context.Background())
		}
		// A daemon that was killed leaves its mounts, and a fake one has none.
		table, _ := mountinfo.Read()
		for _, m := range slices.Backward(table) {
			if mountinfo.IsBelow(m.Point, env.WorkDir) {
				_ = unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			}
		}
		os.RemoveAll(dir)
	})
	return nil
}

func find(ts *testscript.TestScript, dir string) mounts.Entry {
	running, err := mounts.List(ts.Getenv("RUN"))
	ts.Check(err)
	for _, e := range running {
		if e.Mount == ts.MkAbs(dir) {
			return e
		}
	}
	ts.Fatalf("no daemon serves %s: %v", dir, running)
	return mounts.Entry{}
}

// sendSignal sends the daemon of a mount a signal: signal KILL DIR. It waits
// for the end of one that is killed.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	e := find(ts, args[1])
	ts.Check(unix.Kill(e.PID, unix.SignalNum("SIG"+args[0])))
	switch args[0] {
	case "KILL", "TERM":
		ts.Check(e.Wait(context.Background()))
	case "STOP":
		awaitTrue(ts, "all threads have stopped", func() bool { return stopped(ts, e.PID) })
	}
}

// stopped reports whether all threads of a process are: each stops when it is
// next to run.
func stopped(ts *testscript.TestScript, pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	ts.Check(err)
	if len(threads) == 0 {
		ts.Fatalf("process %d is gone", pid)
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

// held is what scripts hold open, by path.
var held = make(map[string]*os.File)

// hold opens a directory in this process; unhold closes it.
func hold(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	held[f.Name()] = f
	ts.Setenv("HOLDER", strconv.Itoa(os.Getpid()))
}

func unhold(ts *testscript.TestScript, _ bool, args []string) {
	// The child of another script has it open, too, until it has become its program.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	ts.Check(held[ts.MkAbs(args[0])].Close())
}

// ended waits until no daemon serves a mount any more: ended DIR.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	running, err := mounts.List(ts.Getenv("RUN"))
	ts.Check(err)
	for _, e := range running {
		if e.Mount == ts.MkAbs(args[0]) {
			ts.Check(e.Wait(context.Background()))
		}
	}
}

// exits runs a command and wants its exit code: exits 3 rankfs status.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("got %v, want exit code %s", err, args[0])
	}
}

// await waits until a file has a text, or until a daemon can be asked: await
// FILE TEXT, await DIR. It looks again and again, since nothing else tells.
func await(ts *testscript.TestScript, _ bool, args []string) {
	awaitTrue(ts, strings.Join(args, " "), func() bool {
		if len(args) == 1 {
			running, _ := mounts.List(ts.Getenv("RUN"))
			return slices.ContainsFunc(running, func(e mounts.Entry) bool { return e.Mount == ts.MkAbs(args[0]) })
		}
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		ts.Check(err)
		return strings.Contains(string(data), args[1])
	})
}

func awaitTrue(ts *testscript.TestScript, what string, is func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ts.Check(eventually.Until(ctx, func() error {
		if is() {
			return nil
		}
		return errors.New(what)
	}))
}
