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
	root   string // that directory
	rankfs string // the daemon and the command
)

func TestMain(m *testing.M) {
	if os.Getenv(rankEnv) != "" {
		rankMain()
		return
	}
	if os.Getenv(noNetlinkEnv) != "" {
		fmt.Fprintln(os.Stderr, withoutNetlink(os.Args[1:]))
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
		os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"),
		os.Mkdir(pidDir(root), 0o700))
	if err != nil {
		return 1, err
	}
	rankfs = filepath.Join(root, "rankfs")
	build := exec.Command("go", "build", buildFlag, "-o", rankfs, "rankfs/cmd/rankfs")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build rankfs: %w\n%s", err, out)
	}
	code = m.Run()
	left := leftovers(root)
	return code, errors.Join(left, sweep(root))
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
	for _, p := range processes(dir) {
		left = append(left, fmt.Sprintf("process %d (%s)", p.pid, p.exe))
	}
	for _, point := range mountsBelow(dir) {
		left = append(left, "mount "+point)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		switch e.Name() {
		case "lock", "pids", "rankfs":
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
	for _, p := range processes(dir) {
		_ = unix.Kill(p.pid, unix.SIGKILL)
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

// A process is one that a run started, as its pid file says.
type process struct {
	pid     int
	started uint64
	exe     string
}

func pidDir(dir string) string { return filepath.Join(dir, "pids") }

// note keeps the pid of a child where a later run finds it.
func note(pid int) (done func(), err error) {
	p, err := lookAt(pid)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(pidDir(root), strconv.Itoa(pid))
	err = os.WriteFile(file, fmt.Appendf(nil, "%d %d", p.pid, p.started), 0o600)
	return func() { os.Remove(file) }, err
}

// processes are those of a run that still live: a pid that was given to
// somebody else began at another time and runs another program.
func processes(dir string) (live []process) {
	files, _ := filepath.Glob(filepath.Join(pidDir(dir), "*"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		var noted process
		if _, serr := fmt.Sscanf(string(text), "%d %d", &noted.pid, &noted.started); err != nil || serr != nil {
			continue
		}
		p, err := lookAt(noted.pid)
		ours := strings.HasPrefix(p.exe, dir+"/") || strings.HasSuffix(strings.TrimSuffix(p.exe, " (deleted)"), ".test")
		if err == nil && ours && p.started == noted.started {
			live = append(live, p)
		}
	}
	return live
}

func lookAt(pid int) (process, error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return process{}, err
	}
	fields, err := processStat(pid)
	if err != nil {
		return process{}, err
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	return process{pid, started, exe}, err
}

// processStat returns the fields of /proc/PID/stat from the state on.
func processStat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields, nil
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
