package node_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/meta"
	"rankfs/meta/trust"
	"rankfs/test/eventually"
)

// A running node in this process. The test itself must not touch the mount.
type running struct {
	t      *testing.T
	mount  string
	client *control.Client
	stop   func()
}

func run(t *testing.T, change func(*node.Config)) running {
	t.Helper()
	c := configured(t)
	if change != nil {
		change(&c)
	}
	if err := os.MkdirAll(c.Mount, 0755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- node.Run(ctx, c, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("run: %v", err)
	}
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}
	t.Cleanup(stop)
	entries, err := mounts.List(c.RunDir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("list mounts: %v, %v", entries, err)
	}
	return running{t, c.Mount, control.Dial(entries[0].Socket), stop}
}

// configured is what a node of a directory of its own has to know.
func configured(t *testing.T) node.Config {
	t.Helper()
	dir := t.TempDir()
	c := node.Config{
		Mount: filepath.Join(dir, "mnt"), State: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		RAMBytes: 64 << 20, Umask: 022, Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if err := os.Mkdir(c.Mount, 0755); err != nil {
		t.Fatal(err)
	}
	return c
}

func (r running) create(q control.CreateRequest) control.Dataset {
	r.t.Helper()
	d, err := r.client.Create(r.t.Context(), q, func(control.Progress) {})
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// program is one that runs in the mount. It goes there by itself: this process, which is the
// daemon, stands still from a fork on until the other is a program of its own.
func (r running) program(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", append([]string{"-c", `cd "$0" && exec "$@"`, r.mount}, args...)...)
}

// shell runs a command line in the mount, in a process of its own.
func (r running) shell(line string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := r.program(ctx, "sh", "-ec", line)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// After a mount there is no goroutine, no descriptor, no mapping, no mount and
// no file left.
func TestRunLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is forgotten is not to be closed by the collector
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, bytes.Repeat([]byte("0123456789abcde\n"), 1<<14), 0600); err != nil {
		t.Fatal(err)
	}
	mountOnce(t, source) // what the runtime and the FUSE library open once and keep
	before := open(t)
	mount := mountOnce(t, source)
	if after := open(t); after != before {
		t.Errorf("open before:\n%s\nafter:\n%s", before, after)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(table), mount) {
		t.Errorf("mount table has %s still (%v)", mount, err)
	}
	left, err := os.ReadDir(filepath.Join(filepath.Dir(mount), "run"))
	for _, e := range left {
		if e.Name() != "lock" {
			t.Errorf("left in the run directory: %s (%v)", e.Name(), err)
		}
	}
}

// mountOnce is a mount's whole life.
func mountOnce(t *testing.T, source string) (mount string) {
	t.Helper()
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source, Ranks: 2, Batch: "100", Order: "full"})
	r.shell("cat datasets/d/rank-*/* datasets/d/locality datasets/d/chunks > /dev/null; find . -size +0 > /dev/null; cat .rankfs/* datasets/d/dataset.json")
	if n := len(strings.Fields(r.shell("ls datasets/d@ranks=3"))); n != 6 {
		t.Errorf("%d entries in a view of 3 ranks", n)
	}
	for _, name := range []string{"refreshed", "removed"} {
		r.create(control.CreateRequest{Name: name, Source: "file:" + source, Batch: "100"})
		r.shell("cat datasets/" + name + "/rank-0/batch-000000 > /dev/null")
	}
	if _, err := r.client.Refresh(t.Context(), control.RefreshRequest{Name: "refreshed"}, func(control.Progress) {}); err != nil {
		t.Error(err)
	}
	if err := r.client.Remove(t.Context(), "removed"); err != nil {
		t.Error(err)
	}
	r.stop()
	return r.mount
}

// open lists what this process has open and mapped, but for its own libraries.
func open(t *testing.T) string {
	t.Helper()
	var all []string
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && !strings.HasPrefix(to, "/proc/") {
			all = append(all, to)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 5 && f[4] != "0" && !strings.Contains(f[5], "/lib/") && !strings.HasSuffix(f[5], ".test") {
			all = append(all, f[5])
		}
	}
	return strings.Join(all, "\n")
}

// Refresh and remove: names mean the new version at once, what was open stays.
func TestRefreshAndRemove(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(source+".new", []byte(s), 0600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(source+".new", source); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntwo\n")
	r := run(t, nil)
	r.create(control.CreateRequest{Name: "d", Source: "file:" + source})
	if got := r.shell("cat datasets/d/rank-0/batch-000000"); got != "one\ntwo\n" {
		t.Errorf("first version: %q", got)
	}
	write("three\n")
	if got := r.shell("cat datasets/d/rank-0/batch-000000 2>&1 || true"); !strings.Contains(got, "Stale file handle") {
		t.Errorf("changed source: %q, want a stale handle", got)
	}
	if d, err := r.client.Dataset(t.Context(), "d"); err != nil || d.State != "stale" || !strings.Contains(d.Reason, "refresh") {
		t.Errorf("changed source: %+v, %v", d, err)
	}
	if _, err := r.client.Refresh(t.Context(), control.RefreshRequest{Name: "d"}, func(control.Progress) {}); err != nil {
		t.Fatal(err)
	}
	if got := r.shell("cat datasets/d/rank-0/batch-000000"); got != "three\n" {
		t.Errorf("refreshed: %q", got)
	}
	if err := r.client.Remove(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if got := r.shell("ls datasets; cat datasets/d/rank-0/batch-000000 2>&1 || true"); !strings.Contains(got, "No such file") {
		t.Errorf("removed: %q", got)
	}
}

// A catalog outlives its daemon. An index that is damaged does not keep the
// others from being served, and is made again by a refresh.
func TestCatalogIsKept(t *testing.T) {
	dir := t.TempDir()
	keep := func(c *node.Config) { c.State = filepath.Join(dir, "state") }
	r := run(t, keep)
	index := make(map[string]string) // by name of dataset
	for _, name := range []string{"good", "bad", "gone"} {
		source := filepath.Join(dir, name)
		if err := os.WriteFile(source, []byte("a\n"+name+"\n"), 0600); err != nil {
			t.Fatal(err)
		}
		r.create(control.CreateRequest{Name: name, Source: "file:" + source})
		files, err := filepath.Glob(filepath.Join(dir, "state", "indexes", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !slices.Contains(slices.Collect(maps.Values(index)), f) {
				index[name] = f
			}
		}
	}
	r.stop()
	if err := os.WriteFile(index["bad"], []byte("not an index"), 0600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(index["gone"]); err != nil {
		t.Fatal(err)
	}
	r = run(t, keep)
	if got := r.shell("ls datasets; cat datasets/good/rank-0/batch-000000"); got != "good\na\ngood\n" {
		t.Errorf("after a restart: %q", got)
	}
	for _, name := range []string{"bad", "gone"} {
		if _, err := r.client.Dataset(t.Context(), name); err == nil || !strings.Contains(err.Error(), "rankfs dataset refresh "+name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.client.Refresh(t.Context(), control.RefreshRequest{Name: name}, func(control.Progress) {}); err != nil {
			t.Errorf("refresh %s: %v", name, err)
		}
		if got := r.shell("cat datasets/" + name + "/rank-0/batch-000000"); got != "a\n"+name+"\n" {
			t.Errorf("%s after a refresh: %q", name, got)
		}
	}
}

// Verify reads everything back, whatever its size, and says what it hashes to.
func TestVerify(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	text := bytes.Repeat([]byte("a line\n"), 2_000_000) // more than one read's worth
	if err := os.WriteFile(source, text, 0600); err != nil {
		t.Fatal(err)
	}
	r := run(t, nil)
	sums := make(map[string]bool)
	for i, as := range []string{"lines", "fixed:7", "files"} { // the same bytes in records of three kinds
		name := fmt.Sprint("d", i)
		r.create(control.CreateRequest{Name: name, Source: "file:" + source + "?as=" + as})
		v, err := r.client.Verify(t.Context(), name, func(control.Progress) {})
		if err != nil || v.Bytes != int64(len(text)) {
			t.Fatalf("%s: %+v, %v", as, v, err)
		}
		sums[v.Checksum] = true
	}
	if len(sums) != 1 {
		t.Errorf("the same bytes have checksums %v", sums)
	}
	if _, err := r.client.Verify(t.Context(), "none", func(control.Progress) {}); err == nil {
		t.Error("verified a dataset that is not there")
	}
	want := fmt.Sprintf("%x", sha256.Sum256(text))
	if got := r.shell("cat datasets/d0@batch=100000/rank-0/batch-*[0-9] | sha256sum"); !strings.HasPrefix(got, want) {
		t.Errorf("through the mount: %s, want %s", got, want)
	}
}

// free is an address at which no process listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A node that is removed says so, serves what it has, and is not mounted again. What it had of
// the shuffle pool, for which no node asks it, goes when it is unmounted.
func TestARemovedNode(t *testing.T) {
	first := run(t, func(c *node.Config) { c.Listen = "127.0.0.1:0" })
	token, err := first.client.CreateToken(t.Context(), control.TokenRequest{Role: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	var config node.Config
	second := run(t, func(c *node.Config) {
		c.Listen, c.Join, c.Token, c.PoolRAM = free(t), token.Join, token.Token, 16<<20
		config = *c
	})
	source := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(source, []byte("one\ntwo\n"), 0644); err != nil {
		t.Fatal(err)
	}
	second.create(control.CreateRequest{Name: "d", Source: "file:" + source, Batch: "2"})
	read := func() string { return second.shell("cat datasets/d/rank-0/batch-000000") }
	want := read()
	second.shell("mkdir -p shuffle/job/stage; echo maps=2 >shuffle/job/stage/spec; echo words >shuffle/job/stage/.map-000000.0; mv shuffle/job/stage/.map-000000.0 shuffle/job/stage/map-000000")
	cluster := func(r running) control.Cluster {
		t.Helper()
		k, err := r.client.Cluster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	self := cluster(second).Self
	if err := second.client.RemoveNode(t.Context(), cluster(first).Self); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("the only one that votes is removed: %v", err)
	}
	if err := first.client.RemoveNode(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it knows that it was removed", func() bool { return cluster(second).Removed })
	status, err := second.client.Status(t.Context())
	if err != nil || !slices.Contains(status.Warnings, trust.ErrRemoved.Error()) {
		t.Errorf("%q, %v", status.Warnings, err)
	}
	if got := read(); got != want {
		t.Errorf("it serves %q", got)
	}
	second.stop()
	if left, err := os.ReadDir(filepath.Join(config.State, "pool")); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v of the shuffle pool, %v", left, err)
	}
	err = node.Run(t.Context(), config, func() { t.Error("it was mounted") })
	if !errors.Is(err, trust.ErrRemoved) {
		t.Errorf("it is mounted again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(config.State, "trust", "ca.key")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has the authority's key: %v", err)
	}
}
