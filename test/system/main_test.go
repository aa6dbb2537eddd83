package system_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// rootPrefix begins the name of the one directory in which a run of these
// tests has all that it makes: mounts, state, sources, the binary.
const rootPrefix = "rankfs-system-"

var (
	root     string // that directory
	rankfs   string // the daemon and the command
	commands string // the command, without the race detector: tests of cmd/rankfs have it
	ranks    string // the program of ranks, without it
)

func TestMain(m *testing.M) {
	if os.Getenv(rankEnv) != "" {
		rankMain()
		return
	}
	if unit := os.Getenv(boundsEnv); unit != "" {
		fmt.Fprintln(os.Stderr, becomeBounded(settings(unit), os.Args[1:]))
		os.Exit(1)
	}
	if os.Getenv(aloneEnv) != "" {
		fmt.Fprintln(os.Stderr, becomeAlone(os.Args[1:]))
		os.Exit(1)
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/system:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("only root can mount: run the tests as root")
	}
	if _, err := os.Stat(programs + "bin"); err != nil {
		return 1, fmt.Errorf("%w: build the ranks with: make -C test/mpi", err)
	}
	if err := sweepOldRuns(); err != nil {
		return 1, err
	}
	// Short: a socket's path has 107 bytes at most.
	if root, err = os.MkdirTemp("", rootPrefix); err != nil {
		return 1, err
	}
	// Other users have to get through to the mounts.
	if err := os.Chmod(root, 0o711); err != nil {
		return 1, err
	}
	lock, err := lockRoot(root)
	if err != nil {
		return 1, err
	}
	defer lock.Close()
	err = errors.Join(
		os.Setenv("TMPDIR", root), // for t.TempDir
		// A program with the race detector waits for a second before it ends.
		os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	if err != nil {
		return 1, err
	}
	if err := buildPrograms(); err != nil {
		return 1, err
	}
	code = m.Run()
	left := leftovers(root)
	return code, errors.Join(left, sweep(root))
}

// buildPrograms builds the daemon as the tests are. With the race detector a program takes
// 50 ms of a processor to start and to end, so thousands of commands and hundreds of ranks,
// which are not what it is to look at, go without.
func buildPrograms() (err error) {
	rankfs = filepath.Join(root, "rankfs")
	commands = rankfs
	if ranks, err = os.Executable(); err != nil {
		return err
	}
	builds := [][]string{{"build", fmt.Sprint("-race=", race), "-o", rankfs, "rankfs/cmd/rankfs"}}
	if race {
		commands, ranks = filepath.Join(root, "commands"), filepath.Join(root, "ranks.test")
		builds = append(builds, []string{"build", "-race=false", "-o", commands, "rankfs/cmd/rankfs"},
			[]string{"test", "-c", "-vet=off", "-race=false", "-o", ranks, "rankfs/test/system"})
	}
	for _, args := range builds {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// lockRoot says that a run is going on: the kernel lets go of the lock when
// the process ends, however that happens.
func lockRoot(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweepOldRuns cleans up after runs that crashed.
func sweepOldRuns() error {
	old, err := filepath.Glob(filepath.Join(os.TempDir(), rootPrefix+"*"))
	for _, dir := range old {
		if _, lerr := os.Lstat(filepath.Join(dir, "lock")); lerr != nil {
			continue // it has just begun
		}
		lock, lerr := lockRoot(dir)
		if lerr != nil {
			continue // it is still going on
		}
		err = errors.Join(err, sweep(dir))
		lock.Close()
	}
	return err
}

// leftovers is an error that names what the tests did not clean up.
func leftovers(dir string) error {
	var left []string
	for pid, program := range processes(dir) {
		left = append(left, fmt.Sprintf("process %d (%s)", pid, program))
	}
	for _, point := range mountsBelow(dir) {
		left = append(left, "mount "+point)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		switch e.Name() {
		case "lock", "rankfs", "commands", "ranks.test":
		default:
			left = append(left, "file "+filepath.Join(dir, e.Name()))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("left behind: %s", strings.Join(left, ", "))
}

// sweep ends the processes, takes down the mounts and removes the files of a
// run, and of no other.
func sweep(dir string) error {
	for pid := range processes(dir) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	var errs []error
	points := mountsBelow(dir)
	for i := len(points) - 1; i >= 0; i-- { // those inside others first
		errs = append(errs, unix.Unmount(points[i], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	if len(mountsBelow(dir)) > 0 {
		return errors.Join(append(errs, errors.New("mounts are left below "+dir))...)
	}
	return errors.Join(append(errs, os.RemoveAll(dir))...)
}

// processes are those of a run that still live, with their programs: its daemons and
// commands, and its ranks, which have its directory in their environment.
func processes(dir string) map[int]string {
	live := make(map[int]string)
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		program, err := os.Readlink(p + "/exe")
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(p + "/environ")
		rank := strings.HasSuffix(strings.TrimSuffix(program, " (deleted)"), ".test") && strings.Contains("\x00"+string(env), "\x00TMPDIR="+dir+"\x00")
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && (rank || strings.HasPrefix(program, dir+"/")) {
			live[pid] = program
		}
	}
	return live
}

// mountsBelow lists the mount points below dir, as the kernel has them.
func mountsBelow(dir string) (points []string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			points = append(points, f[4])
		}
	}
	return points
}
