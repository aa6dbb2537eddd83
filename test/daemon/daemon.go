package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// The bounds of what tests wait for; they turn a hang into a failure, on a machine that
// is busy with other things too.
const (
	toolTime = 4 * time.Minute  // one command: an open may wait for two minutes
	jobTime  = 15 * time.Minute // one job of many ranks
	waitTime = 2 * time.Minute  // one condition
)

// Build builds rankfs, with tags, and returns its path, and what removes it: with the race
// detector if the tests are asked for that. A race in a daemon then is its end, if GORACE
// says halt_on_error, and what its test waits for does not come.
func Build(tags ...string) (path string, remove func() error, err error) {
	if err := cluster.NeedRoot(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "rankfs-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "rankfs")
	if err := build(path, tags); err != nil {
		remove()
		return "", nil, fmt.Errorf("build rankfs: %w", err)
	}
	return path, remove, nil
}

// programs is where one package's tests build rankfs, and those of packages beside it find
// that it is up to date: to link it takes four seconds of a processor, and six with what
// debuggers want.
const programs = "../../bin/test"

func build(path string, tags []string) error {
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	race := "-race=" + strconv.FormatBool(os.Getenv("RANKFS_TEST_RACE") != "")
	shared := filepath.Join(programs, strings.Join(append([]string{"rankfs" + race}, tags...), ","))
	lock, err := os.Create(shared + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	for _, line := range [][]string{
		{"go", "build", race, "-tags=" + strings.Join(tags, ","), "-o", shared, "rankfs/cmd/rankfs"},
		{"cp", shared, path}, // another build must not change what runs
	} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(line, " "), err, out)
		}
	}
	return nil
}

// dependOnSources looks at all that programs of the tests are built of. go test answers by an
// earlier result as long as all that the tests looked at is as it was; of what another go builds
// it knows nothing, nor of what is done before the tests begin.
var dependOnSources = sync.OnceValue(func() error {
	if !testing.Testing() {
		return nil
	}
	return filepath.WalkDir("../..", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == "bin" || e.Name() == "build" || len(e.Name()) > 2 && e.Name()[0] == '.') {
			return fs.SkipDir
		}
		return err
	})
})

// Main builds rankfs for the tests of a package and runs them. It returns their exit
// code.
func Main(m *testing.M, program *string) int {
	path, remove, err := Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	*program = path
	return m.Run()
}

// Program is Build for one test.
func Program(t testing.TB) string {
	t.Helper()
	path, remove, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove() })
	return path
}

// A Place is a host, and directories that outlive a daemon there.
type Place struct {
	t        testing.TB
	program  string
	commands string        // as program is, for what is no daemon; empty: program
	Host     *cluster.Host // nil: this one
	Dir      string        // with mnt, run, state and nvme in it, and the daemon's log
	options  []string
	under    []string // the command that starts a daemon; empty: it is started by itself
	daemon   *Process // nil: none was started, or it was stopped
}

// New makes a place on a host, which is this one if it is nil. Daemons there get the
// options of mount that are given.
func New(t testing.TB, program string, host *cluster.Host, options ...string) *Place {
	t.Helper()
	p := At(t, program, t.TempDir(), options...)
	p.Host = host
	for _, name := range []string{"run", "state", "nvme"} {
		if err := os.Mkdir(filepath.Join(p.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// At makes a place on this host in a directory that is there, with nothing but the
// mount point in it, which other users reach. Daemons there leave nothing of a disk free, unless
// told otherwise: what they keep does not depend on how full the machine's is.
func At(t testing.TB, program, dir string, options ...string) *Place {
	t.Helper()
	p := &Place{program: program, Dir: dir, options: append([]string{"--nvme-floor", "0B"}, options...)}
	if err := os.Mkdir(p.Mount(), 0o755); err != nil {
		t.Fatal(err)
	}
	return p.For(t)
}

// For is the same place in another test, whose daemons end with that. If it fails, it
// says what they logged.
func (p *Place) For(t testing.TB) *Place {
	if err := dependOnSources(); err != nil {
		t.Fatal(err)
	}
	one := *p
	one.t, one.daemon = t, nil
	t.Cleanup(func() {
		if log := one.Log(); t.Failed() && log != "" {
			t.Logf("log of the daemons on %s:\n%s", one.name(), log)
		}
	})
	return &one
}

// Under has daemons there be started by a command, which gets theirs as its last
// arguments and becomes it.
func (p *Place) Under(command ...string) { p.under = command }

// Options adds options of mount, for all daemons there from now on.
func (p *Place) Options(more ...string) { p.options = append(p.options, more...) }

// Program has daemons there be of another build from now on.
func (p *Place) Program(path string) { p.program = path }

// Commands has commands there be of another build than daemons.
func (p *Place) Commands(path string) { p.commands = path }

// Mount is where the daemon mounts.
func (p *Place) Mount() string { return p.Dir + "/mnt" }

// Start mounts, and unmounts when the test ends. More options of mount may be
// given for this time.
func (p *Place) Start(more ...string) {
	p.t.Helper()
	if err := p.Try(more...); err != nil {
		p.t.Fatalf("daemon on %s: %v\n%s", p.name(), err, p.Log())
	}
}

// Try is Start for a mount that may fail.
func (p *Place) Try(more ...string) error {
	line := MountLine(p.Dir+"/run", p.Mount(), p.Dir+"/state", append(slices.Clip(p.options), more...)...)
	line = append(append(slices.Clone(p.under), p.program), line...)
	cmd := p.command(context.Background(), line[0], line[1:]...)
	if p.Host == nil {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM // it unmounts when the test dies
	}
	d, err := Launch(cmd, p.Dir+"/log")
	if err != nil {
		return err
	}
	p.daemon = d
	p.t.Cleanup(func() { p.Stop() })
	return d.AwaitReady("mnt", waitTime)
}

// PID is that of the daemon.
func (p *Place) PID() int { return p.daemon.Process.Pid }

// Kill ends the daemon at once.
func (p *Place) Kill() {
	p.t.Helper()
	if err := p.daemon.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.AwaitEnd()
}

// Signal sends the daemon a signal.
func (p *Place) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.daemon.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Running reports whether there is a daemon that has not ended.
func (p *Place) Running() bool {
	if p.daemon == nil {
		return false
	}
	select {
	case <-p.daemon.Ended:
		return false
	default:
		return true
	}
}

// AwaitEnd waits for the end of a daemon that was told to end, or killed, and returns
// what it ended with.
func (p *Place) AwaitEnd() error {
	p.t.Helper()
	select {
	case <-p.daemon.Ended:
	case <-time.After(waitTime):
		p.t.Errorf("the daemon on %s does not end", p.name())
		p.daemon.Process.Signal(syscall.SIGQUIT) // it logs what it is at
		time.Sleep(time.Second)
		p.daemon.Process.Kill()
		<-p.daemon.Ended
	}
	return p.daemon.Err
}

// Stop unmounts and waits for the daemon's end. It returns what was wrong with either.
func (p *Place) Stop() error {
	p.t.Helper()
	if p.daemon == nil {
		return nil
	}
	p.daemon.Process.Signal(syscall.SIGCONT) // a test may have failed while it was stopped
	running := p.Running()
	_, err := p.Rankfs("umount", p.Mount())
	if running && err != nil {
		p.t.Logf("umount on %s: %v", p.name(), err)
	}
	err = errors.Join(err, p.AwaitEnd())
	p.daemon = nil
	return err
}

// Log is the log of the daemons of this place.
func (p *Place) Log() string {
	text, _ := os.ReadFile(p.Dir + "/log")
	return string(text)
}

// Command is a command on the host.
func (p *Place) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := p.command(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return cmd
}

func (p *Place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if p.Host != nil {
		return p.Host.Command(ctx, name, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (p *Place) name() string {
	if p.Host != nil {
		return p.Host.Name
	}
	return "this host"
}

// Tool runs a command on the host and returns what it says.
func (p *Place) Tool(name string, args ...string) (string, error) {
	return p.within(toolTime, name, args...)
}

func (p *Place) within(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var text, words strings.Builder
	cmd := p.Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &text, &words
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, words.String())
	}
	return text.String(), err
}

// Must is Tool for what has to go well.
func (p *Place) Must(name string, args ...string) string {
	p.t.Helper()
	out, err := p.Tool(name, args...)
	if err != nil {
		p.t.Fatalf("on %s: %s %s: %v", p.name(), name, strings.Join(args, " "), err)
	}
	return out
}

// Rankfs runs the command for this place's daemon.
func (p *Place) Rankfs(args ...string) (string, error) {
	return p.Tool(cmp.Or(p.commands, p.program), append([]string{"--run", p.Dir + "/run"}, args...)...)
}

// Answer is Rankfs for what the nodes have to agree on: it asks again while the command
// says that they do not, as when they take longer to choose a leader than it waits.
func (p *Place) Answer(args ...string) (out string, err error) {
	p.t.Helper()
	eventually.Done(p.t, 2*waitTime, strings.Join(args, " ")+" is answered", func() error {
		out, err = p.Rankfs(args...)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == away {
			return err
		}
		return nil
	})
	return out, err
}

// away is what a command ends with that could not be answered, perhaps only for now.
const away = 6

// Do is Rankfs for what has to go well.
func (p *Place) Do(args ...string) string {
	p.t.Helper()
	return p.Must(cmp.Or(p.commands, p.program), append([]string{"--run", p.Dir + "/run"}, args...)...)
}
