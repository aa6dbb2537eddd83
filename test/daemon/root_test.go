package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/daemon"
)

// needEnv has this test binary begin as that of a package whose tests need root, and says
// how.
const needEnv = "RANKFS_TEST_NEED"

// needs are the ways in which such tests begin.
var needs = map[string]func(*testing.M) int{
	"daemon.Main":    func(m *testing.M) int { return daemon.Main(m, new(string)) },
	"daemon.Program": func(*testing.M) int { daemon.Program(refused{}); return 0 },
	"cluster.Main":   func(m *testing.M) int { return cluster.Main(m, "client") },
	"cluster.Shared": func(*testing.M) int { cluster.Shared(refused{}); return 0 },
	"cluster.Bare":   func(*testing.M) int { cluster.Bare(refused{}); return 0 },
}

// refused is a test that ends its process when it fails, and may do nothing else.
type refused struct{ testing.TB }

func (refused) Helper() {}

func (refused) Fatal(why ...any) {
	fmt.Fprintln(os.Stderr, why...)
	os.Exit(1)
}

func TestMain(m *testing.M) {
	if need := needs[os.Getenv(needEnv)]; need != nil {
		os.Exit(need(m))
	}
	os.Exit(m.Run())
}

// Tests that need root say so when another user runs them, before anything is built or waited for:
// there is nothing here by which that could be done.
func TestOthersAreToldToBeRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("only root can be another user: run the tests as root")
	}
	self, err := os.Open("/proc/self/exe") // its path may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	for name := range needs {
		cmd := exec.Command("/proc/self/fd/3", "-test.count=1")
		cmd.ExtraFiles = []*os.File{self}
		cmd.Env = []string{needEnv + "=" + name, "PATH=/nowhere", "HOME=/nowhere", "TMPDIR=/nowhere"}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "run the tests as root") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
