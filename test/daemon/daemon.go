// Package daemon runs rankfs daemons, on the hosts of a test's cluster or on this one.
package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/cluster"
)

// The bounds of what tests wait for; they turn a hang into a failure.
const (
	toolTime = 150 * time.Second // one command: an open may wait for two minutes
	jobTime  = 5 * time.Minute   // one job of many ranks
	waitTime = time.Minute       // one condition
)

// BuildCommand builds rankfs to a path: with the race detector if the tests are
// asked for that. A race in a daemon then is its end, if GORACE says
// halt_on_error, and what its test waits for does not come. Tags are of the build.
func BuildCommand(path string, tags ...string) *exec.Cmd {
	race := "-race=" + strconv.FormatBool(os.Getenv("RANKFS_TEST_RACE") != "")
	return exec.Command("go", "build", race, "-tags="+strings.Join(tags, ","), "-o", path, "rankfs/cmd/rankfs")
}

// Build builds rankfs, with tags, and returns its path, and what removes it.
func Build(tags ...string) (path string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "rankfs-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	path = filepath.Join(dir, "rankfs")
	if out, err := BuildCommand(path, tags...).CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build rankfs: %w\n%s", err, out)
	}
	return path, remove, nil
}

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
	t       testing.TB
	program string
	Host    *cluster.Host // nil: this one
	Dir     string        // with mnt, run, state and nvme in it, and the daemon's log
	options []string
	cmd     *exec.Cmd
	ended   chan error
}

// New makes a place on a host, which is this one if it is nil. Daemons there get the
// options of mount that are given.
func New(t testing.TB, program string, host *cluster.Host, options ...string) *Place {
	t.Helper()
	p := &Place{t: t, program: program, Host: host, Dir: t.TempDir(), options: options}
	for _, name := range []string{"mnt", "run", "state", "nvme"} {
		if err := os.Mkdir(filepath.Join(p.Dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// Options adds options of mount, for all daemons there from now on.
func (p *Place) Options(more ...string) { p.options = append(p.options, more...) }

// Program has daemons there be of another build from now on.
func (p *Place) Program(path string) { p.program = path }

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
	log, err := os.OpenFile(p.Dir+"/log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	line := append([]string{"--run", p.Dir + "/run", "--json", "mount", p.Mount(), "--state", p.Dir + "/state"}, p.options...)
	p.cmd = p.command(context.Background(), p.program, append(line, more...)...)
	p.ended = make(chan error, 1)
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	out.(*os.File).SetReadDeadline(time.Now().Add(waitTime))
	ready, err := bufio.NewReader(out).ReadString('\n')
	go func(c *exec.Cmd, ended chan error) { ended <- c.Wait() }(p.cmd, p.ended)
	p.t.Cleanup(p.finish)
	if err != nil || !strings.Contains(ready, "mnt") {
		return fmt.Errorf("it is not ready: %w", err)
	}
	return nil
}

// PID is that of the daemon.
func (p *Place) PID() int { return p.cmd.Process.Pid }

// Kill ends the daemon at once.
func (p *Place) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.AwaitEnd()
}

// AwaitEnd waits for the end of a daemon whose mount is gone.
func (p *Place) AwaitEnd() { p.ended <- <-p.ended }

// For is the same place in another test, whose daemons end with that.
func (p *Place) For(t testing.TB) *Place {
	one := *p
	one.t, one.cmd, one.ended = t, nil, nil
	return &one
}

// Signal sends the daemon a signal.
func (p *Place) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Stop unmounts and waits for the daemon's end.
func (p *Place) Stop() {
	p.t.Helper()
	p.finish()
}

func (p *Place) finish() {
	if p.cmd == nil {
		return
	}
	out, err := p.Rankfs("umount", p.Mount())
	select {
	case <-p.ended:
	case <-time.After(waitTime):
		p.t.Errorf("the daemon on %s does not end: umount: %v %s", p.name(), err, out)
		p.cmd.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		p.cmd.Process.Kill()
		<-p.ended
	}
	p.cmd = nil
	if p.t.Failed() {
		p.t.Logf("log of the daemon on %s:\n%s", p.name(), p.Log())
	}
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
	return p.Tool(p.program, append([]string{"--run", p.Dir + "/run"}, args...)...)
}

// Do is Rankfs for what has to go well.
func (p *Place) Do(args ...string) string {
	p.t.Helper()
	return p.Must(p.program, append([]string{"--run", p.Dir + "/run"}, args...)...)
}

// Status decodes what the daemon says of itself into v.
func (p *Place) Status(v any) {
	p.t.Helper()
	text := p.Do("--json", "status")
	if err := json.Unmarshal([]byte(text), v); err != nil {
		p.t.Fatalf("%v: %s", err, text)
	}
}
