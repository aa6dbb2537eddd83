package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"rankfs/test/mountns"
)

// insideEnv says that this process has a mount namespace of its own.
const insideEnv = "RANKFS_TEST_INSIDE"

// TestScriptsOnARealDaemon runs the scripts of testdata/real, whose daemons
// mount. They do it in a mount namespace, which takes the mounts along when it
// ends, however it ends. Daemons that a script leaves, since it failed, are ended.
func TestScriptsOnARealDaemon(t *testing.T) {
	if os.Getenv(insideEnv) == "" {
		if os.Getuid() != 0 {
			t.Fatal("only root can mount: run the tests as root")
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestScriptsOnARealDaemon$", "-test.v")
		cmd.Env = append(os.Environ(), insideEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestScriptsOnARealDaemon/session") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := errors.Join(mountns.LetGo(), unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endChildren)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/real",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REAL", "1")
			return setup(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// endChildren ends what this process and its children, which have ended, have begun.
func endChildren() {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		pids, _ := os.ReadFile(task)
		for _, pid := range strings.Fields(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = unix.Kill(n, unix.SIGKILL)
			}
		}
	}
}
