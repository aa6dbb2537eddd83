package hdfs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankfs/test/cluster"
)

// The bounds of what these tests wait for; they turn a hang into a failure.
const (
	toolTime = 150 * time.Second // one command: an open may wait for two minutes
	waitTime = 30 * time.Second  // one condition
)

// A place is a host, and directories that outlive a daemon there.
type place struct {
	t       testing.TB
	c       *cluster.Cluster
	host    *cluster.Host
	dir     string
	options []string
}

func newPlace(t testing.TB, c *cluster.Cluster, host string, options ...string) *place {
	t.Helper()
	p := &place{t, c, c.Host(host), t.TempDir(), options}
	for _, name := range []string{"mnt", "run", "state", "nvme"} {
		if err := os.Mkdir(filepath.Join(p.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// A daemon serves a mount of its host.
type daemon struct {
	*place
	cmd   *exec.Cmd
	ended chan error
}

// start mounts, and unmounts when the test ends.
func (p *place) start() *daemon {
	p.t.Helper()
	log, err := os.OpenFile(p.dir+"/log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	line := append([]string{"--run", p.dir + "/run", "--json", "mount", p.dir + "/mnt", "--state", p.dir + "/state",
		"--ram", "64MiB", "--hadoop-conf", p.c.Conf()}, p.options...)
	d := &daemon{place: p, cmd: p.host.Command(context.Background(), rankfs, line...), ended: make(chan error, 1)}
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	out.(*os.File).SetReadDeadline(time.Now().Add(waitTime))
	ready, err := bufio.NewReader(out).ReadString('\n')
	go func() { d.ended <- d.cmd.Wait() }()
	p.t.Cleanup(d.finish)
	if err != nil || !strings.Contains(ready, "mnt") {
		p.t.Fatalf("daemon is not ready: %v\n%s", err, p.log())
	}
	return d
}

// kill ends the daemon at once.
func (d *daemon) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	d.ended <- <-d.ended
}

func (d *daemon) finish() {
	d.tool(rankfs, "--run", d.dir+"/run", "umount", d.dir+"/mnt")
	select {
	case <-d.ended:
	case <-time.After(waitTime):
		d.t.Error("the daemon does not end")
		d.cmd.Process.Kill()
		<-d.ended
	}
	if d.t.Failed() {
		d.t.Logf("log of the daemon:\n%s", d.log())
	}
}

func (p *place) log() string {
	text, _ := os.ReadFile(p.dir + "/log")
	return string(text)
}

// tool runs a command on the host.
func (p *place) tool(name string, args ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	var text, words strings.Builder
	cmd := p.host.Command(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &text, &words
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, words.String())
	}
	return text.String(), err
}

// must is tool for what has to go well.
func (p *place) must(name string, args ...string) string {
	p.t.Helper()
	out, err := p.tool(name, args...)
	if err != nil {
		p.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// create registers a path of the cluster.
func (d *daemon) create(name, path string, options ...string) {
	d.t.Helper()
	d.must(rankfs, append([]string{"--run", d.dir + "/run", "dataset", "create", name,
		"--source", "hdfs://" + d.c.Nameservice() + path}, options...)...)
}

// keepOnDisk has what leaves memory kept on disk, also while the planner finds
// that the source is as good.
func (d *daemon) keepOnDisk(view string) {
	d.t.Helper()
	d.must(rankfs, "--run", d.dir+"/run", "cache", "pin", view, "--tier", "nvme")
}

// read is what all batches of a view have, one after another.
func (d *daemon) read(view string) (string, error) {
	return d.tool("sh", "-c", `for r in "$0"/rank-*; do cat "$r"/batch-*[0-9] || exit; done`, d.dir+"/mnt/datasets/"+view)
}

// batch is what cat makes of a batch.
func (d *daemon) batch(view string, n int) (string, error) {
	return d.tool("cat", d.path(view, n))
}

func (d *daemon) path(view string, n int) string {
	return fmt.Sprintf("%s/mnt/datasets/%s/rank-0/batch-%06d", d.dir, view, n)
}

// A status is what these tests want to know of one.
type status struct {
	Counters struct {
		Fills      uint64
		OpenErrors uint64 `json:"open_errors"`
	}
	Warnings []string
	Tiers    []struct {
		Name, State string
		Slabs       int
	}
	HDFS struct {
		Bytes, Local, Files, Corrupt, Failures uint64
		Streams                                int
		LocalBlocks                            string `json:"local_blocks"`
	}
}

func (d *daemon) status() (s status) {
	d.t.Helper()
	text := d.must(rankfs, "--run", d.dir+"/run", "--json", "status")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		d.t.Fatalf("%v: %s", err, text)
	}
	return s
}

// until waits for something.
func until(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
