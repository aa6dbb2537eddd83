package system_test

import (
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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/daemon"
	"rankfs/test/mountns"
)

// The bounds of what these tests wait for. Nothing should ever come near
// them: they turn a hang into a failure.
const (
	toolTime = 4 * time.Minute // one command
	waitTime = 2 * time.Minute // one condition
)

// rounds is how often, or with how much, something is done: with -short, as under the race
// detector, which finds no more in many rounds of one kind, it is few.
func rounds(many, few int) int {
	if testing.Short() {
		return few
	}
	return many
}

// A node is a place for daemons, one after the other, and the daemon that is there.
type node struct {
	*daemon.Place
	t                          testing.TB
	dir, mount, state, run, at string // at is NVMe's
}

var places atomic.Int64

// newNode makes a place. Daemons there have 64 MiB of RAM unless told otherwise.
func newNode(t testing.TB) *node {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprintf("n%d", places.Add(1)))
	must(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		if left := mountsBelow(dir); len(left) > 0 {
			t.Errorf("mounts are left: %v", left)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := daemon.At(t, rankfs, dir, "--ram", "64MiB")
	p.Commands(commands)
	return &node{p, t, dir, p.Mount(), dir + "/state", dir + "/run", dir + "/nvme"}
}

// start mounts in a place of its own.
func start(t testing.TB, args ...string) *node {
	t.Helper()
	return newNode(t).start(args...)
}

// start mounts. The end of the test unmounts, and fails if the daemon does not end well.
func (n *node) start(args ...string) *node {
	n.t.Helper()
	n.Start(args...)
	n.t.Cleanup(func() {
		if n.Running() {
			n.stop()
		}
	})
	return n
}

// stop unmounts, and holds the daemon to a clean end.
func (n *node) stop() {
	n.t.Helper()
	n.clean(n.Stop())
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

// logged counts the lines of the log that hold all the words.
func (n *node) logged(words ...string) int { return len(n.lines(words...)) }

func (n *node) lines(words ...string) (lines []string) {
line:
	for l := range strings.Lines(n.Log()) {
		for _, w := range words {
			if !strings.Contains(l, w) {
				continue line
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// loggedOnce holds the log to one line that has all the words, or to one each time that a
// disk was left alone for long enough and tried again.
func (n *node) loggedOnce(words ...string) {
	n.t.Helper()
	const alone = 30 * time.Second
	lines := n.lines(words...)
	if len(lines) == 0 {
		n.t.Errorf("the log does not say %q", words)
	}
	var before time.Time
	for _, l := range lines {
		word, _, _ := strings.Cut(strings.TrimPrefix(l, "time="), " ")
		at, err := time.Parse(time.RFC3339, word)
		must(n.t, err)
		if at.Sub(before) < alone-time.Second {
			n.t.Errorf("it is logged %v after another: %s", at.Sub(before), l)
		}
		before = at
	}
}

// A result is what a command did.
type result struct {
	out, err string
	code     int
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.code, r.out, r.err) }

// cli runs the rankfs command for this daemon, or another daemon.
func (n *node) cli(args ...string) result {
	n.t.Helper()
	program := commands
	if args[0] == "mount" {
		program = rankfs
	}
	return command(n.t, append([]string{program, "--run", n.run}, args...)...)
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

// refused is cli for a mount that is not to be.
func (n *node) refused(args ...string) result {
	n.t.Helper()
	return n.cli(append([]string{"mount", n.mount, "--state", n.state, "--ram", "64MiB"}, args...)...)
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

// aloneEnv says that this process is to run a command in its mount namespace.
const aloneEnv = "RANKFS_TEST_ALONE"

// becomeAlone lets go of what other tests have mounted, and becomes the command.
func becomeAlone(args []string) error {
	path, err := exec.LookPath(args[0])
	if err := errors.Join(err, os.Unsetenv(aloneEnv), mountns.LetGo()); err != nil {
		return err
	}
	return unix.Exec(path, args, os.Environ())
}

// sh runs a script whose $1 ... are the arguments. It must succeed. In it alone runs a
// command in a mount namespace of its own.
func sh(t testing.TB, script string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	alone := fmt.Sprintf("alone() { %s=1 unshare -m --propagation private %s \"$@\"; }\n", aloneEnv, self)
	r := command(t, append([]string{"sh", "-euc", alone + script, "sh"}, args...)...)
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
	n.t.Helper()
	n.Status(&s)
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
