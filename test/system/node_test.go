package system_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The bounds of what these tests wait for. Nothing should ever come near
// them: they turn a hang into a failure.
const (
	toolTime = 60 * time.Second  // one command
	lifeTime = 170 * time.Second // one daemon
	waitTime = 30 * time.Second  // one condition
)

// A place is where a daemon lives: its directories outlive it.
type place struct {
	t                     testing.TB
	dir                   string
	mount, state, run, at string // at is NVMe's
	group                 string // directory of the cgroup that a daemon lives in; empty: that of the test
}

var places atomic.Int64

func newPlace(t testing.TB) place {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprintf("n%d", places.Add(1)))
	p := place{t, dir, dir + "/mnt", dir + "/state", dir + "/run", dir + "/nvme", ""}
	must(t, os.MkdirAll(p.mount, 0o755))
	t.Cleanup(func() {
		if left := mountsBelow(dir); len(left) > 0 {
			t.Errorf("mounts are left: %v", left)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

// A node is a running daemon.
type node struct {
	place
	cmd   *exec.Cmd
	log   string // a file
	ended chan struct{}
	err   error // of its end, after ended
	note  func()
	guard *time.Timer
}

// start mounts in a place of its own, with 64 MiB of RAM unless told otherwise.
func start(t testing.TB, args ...string) *node {
	t.Helper()
	return newPlace(t).start(args...)
}

// start mounts and waits until the mount is ready. The end of the test
// unmounts, and fails if the daemon does not end well.
func (p place) start(args ...string) *node {
	p.t.Helper()
	n, err := p.tryStart(args...)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, n.tail())
	}
	return n
}

// tryStart is start for a daemon that may refuse. It has then ended.
func (p place) tryStart(args ...string) (*node, error) {
	p.t.Helper()
	n := &node{place: p, log: filepath.Join(p.dir, "log"), ended: make(chan struct{})}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(p.t, err)
	defer log.Close()
	base := []string{"--run", p.run, "--json", "mount", p.mount, "--state", p.state, "--ram", "64MiB"}
	n.cmd = exec.Command(rankfs, append(base, args...)...)
	if p.group != "" {
		n.cmd = exec.Command("sh", append([]string{"-ec", `echo 0 > "$0"/cgroup.procs; exec "$@"`, p.group, rankfs}, append(base, args...)...)...)
	}
	if os.Getenv(noNetlinkEnv) != "" {
		n.cmd = exec.Command("/proc/self/exe", append([]string{rankfs}, n.cmd.Args[1:]...)...)
	}
	n.cmd.Stderr = log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := n.cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, n.cmd.Start())
	n.note, err = note(n.cmd.Process.Pid)
	must(p.t, err)
	n.guard = time.AfterFunc(lifeTime, func() { n.cmd.Process.Kill() })
	must(p.t, out.(*os.File).SetReadDeadline(time.Now().Add(waitTime)))
	line, rerr := bufio.NewReader(out).ReadString('\n')
	go func() { n.err = n.cmd.Wait(); close(n.ended) }()
	p.t.Cleanup(n.finish)
	if rerr != nil || !strings.Contains(line, p.mount) {
		n.cmd.Process.Signal(syscall.SIGTERM)
		<-n.ended
		return n, fmt.Errorf("daemon is not ready: %v", n.err)
	}
	return n, nil
}

// finish is the end of a test for a daemon that it did not end itself.
func (n *node) finish() {
	defer n.note()
	defer n.guard.Stop()
	select {
	case <-n.ended:
	default:
		n.cmd.Process.Signal(syscall.SIGCONT) // the test may have failed in between
		n.stop()
	}
	if n.t.Failed() {
		n.t.Logf("log of the daemon on %s:\n%s", n.mount, n.tail())
	}
}

// stop unmounts, and holds the daemon to a clean end.
func (n *node) stop() {
	n.t.Helper()
	if r := tryCommand(rankfs, "--run", n.run, "umount", n.mount); r.code != 0 {
		n.t.Errorf("umount: %v", r)
		n.cmd.Process.Kill()
		n.awaitEnd()
		exec.Command("umount", "-l", n.mount).Run()
		return
	}
	n.clean(n.awaitEnd())
}

// clean fails the test if the daemon ended badly or left something behind.
func (n *node) clean(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Errorf("daemon: %v", err)
	}
	if slices.Contains(mountsBelow(root), n.mount) {
		n.t.Errorf("the daemon has ended and %s is mounted", n.mount)
	}
	for _, e := range entries(n.run) {
		if e != "lock" {
			n.t.Errorf("after the end of the daemon there is %s in the run directory", e)
		}
	}
	for _, e := range entries(n.at) {
		if strings.HasPrefix(e, ".part-") {
			n.t.Errorf("after the end of the daemon there is an unfinished slab: %s", e)
		}
	}
}

func entries(dir string) (names []string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// awaitEnd waits for the daemon to end by itself.
func (n *node) awaitEnd() error {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(waitTime):
		n.cmd.Process.Kill()
		<-n.ended
		return errors.New("it had to be killed")
	}
	return n.err
}

// signal sends the daemon a signal.
func (n *node) signal(s os.Signal) {
	n.t.Helper()
	must(n.t, n.cmd.Process.Signal(s))
}

// kill ends the daemon as a crash would. Its mount stays.
func (n *node) kill() {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	<-n.ended
}

// tail is the end of the daemon's log.
func (n *node) tail() string {
	text, _ := os.ReadFile(n.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// logged counts the lines of the log that hold all the words.
func (n *node) logged(words ...string) (count int) {
	text, err := os.ReadFile(n.log)
	must(n.t, err)
line:
	for l := range strings.Lines(string(text)) {
		for _, w := range words {
			if !strings.Contains(l, w) {
				continue line
			}
		}
		count++
	}
	return count
}

// A result is what a command did.
type result struct {
	out, err string
	code     int
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.code, r.out, r.err) }

// cli runs the rankfs command for this daemon.
func (n *node) cli(args ...string) result {
	n.t.Helper()
	return command(n.t, append([]string{rankfs, "--run", n.run}, args...)...)
}

// ok runs a rankfs command that must succeed.
func (n *node) ok(args ...string) result {
	n.t.Helper()
	r := n.cli(args...)
	if r.code != 0 {
		n.t.Fatalf("rankfs %s: %v", strings.Join(args, " "), r)
	}
	return r
}

// create registers a dataset.
func (n *node) create(name string, s source, args ...string) {
	n.t.Helper()
	n.ok(append([]string{"dataset", "create", name, "--source", s.uri}, args...)...)
}

// createKept is create, and keeps on disk what leaves memory, also while the
// planner finds that the source is as good.
func (n *node) createKept(name string, s source, args ...string) {
	n.t.Helper()
	n.create(name, s, args...)
	n.ok("cache", "pin", name, "--tier", "nvme")
}

// command runs a program with a deadline.
func command(t testing.TB, args ...string) result {
	t.Helper()
	r := tryCommand(args...)
	if r.code < 0 {
		t.Fatalf("%s: %v", strings.Join(args, " "), r)
	}
	return r
}

// tryCommand is command for a cleanup, which must go on: what did not run to
// its end has the code -1.
func tryCommand(args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(&errs, err)
		return result{out.String(), errs.String(), -1}
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()} // -1 too if it was killed
}

// sh runs a script whose $1 ... are the arguments. It must succeed.
func sh(t testing.TB, script string, args ...string) string {
	t.Helper()
	r := command(t, append([]string{"sh", "-euc", script, "sh"}, args...)...)
	if r.code != 0 {
		t.Fatalf("%s: %v", script, r)
	}
	return r.out
}

// A status is what these tests look at of rankfs status --json.
type status struct {
	PID         int
	Mount       string
	Passthrough struct {
		On     bool
		Reason string
	}
	Tiers    []tierStatus
	Counters struct {
		Opens, OpensReady, OpensWaited, OpenErrors int
		BatchReads, Lookups, Fills, FillErrors     int
		Prefetched, Evicted, Recycled              int
		Readers, OpenHandles, Views                int
	}
	Warnings []string
}

type tierStatus struct {
	Name, Where           string
	State, Empty          string
	Budget, Used, Dying   int64
	Slabs                 int
	Damaged, Lost, Failed int
}

// UnmarshalJSON reads names with underscores into the fields without.
func (s *status) UnmarshalJSON(text []byte) error {
	type plain status
	return json.Unmarshal(bytes.ReplaceAll(text, []byte("_"), nil), (*plain)(s))
}

func (n *node) status() (s status) {
	n.t.Helper()
	must(n.t, json.Unmarshal([]byte(n.ok("status", "--json").out), &s))
	return s
}

// tier is the status of one tier.
func (s status) tier(name string) (used, dying int64, slabs int, state string) {
	for _, t := range s.Tiers {
		if t.Name == name {
			return t.Used, t.Dying, t.Slabs, t.State
		}
	}
	return 0, 0, 0, "there is none"
}

// disk is the status of an NVMe directory.
func (s status) disk(dir string) tierStatus {
	for _, t := range s.Tiers {
		if t.Name == "nvme" && t.Where == dir {
			return t
		}
	}
	return tierStatus{}
}

// path is a path below the mount.
func (n *node) path(parts ...string) string {
	return filepath.Join(append([]string{n.mount, "datasets"}, parts...)...)
}

// batch is the path of a batch.
func (n *node) batch(view string, rank, step int) string {
	return n.path(view, fmt.Sprintf("rank-%d", rank), fmt.Sprintf("batch-%06d", step))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
