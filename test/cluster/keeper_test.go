package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// breaker makes a rerun of a test binary one that breaks the cluster and dies.
const breaker = "RANKFS_CLUSTER_BREAKER"

// rerun runs this test again, in a process of its own.
func rerun(t *testing.T, env string) error {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$")
	c.Env = append(os.Environ(), env+"=1")
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	return err
}

func die() {
	unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// processes are those whose command line or network is the cluster's.
func processes(disk string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), disk) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestAllGoesWithTheKeeper(t *testing.T) {
	c, err := cluster.Open(soon(t), "scrap")
	must(t, err)
	defer c.Close()
	if len(processes(c.Disk())) == 0 {
		t.Fatal("the keeper is not found by its command line")
	}
	must(t, unix.Kill(c.Keeper(), unix.SIGKILL))
	eventually.True(t, "no process is left", func() bool { return len(processes(c.Disk())) == 0 })
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if strings.Contains(string(mounts), c.Disk()) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	stale := c.Disk() + "/stale"
	must(t, os.WriteFile(stale, nil, 0o644))
	again, err := cluster.Open(soon(t), "scrap")
	must(t, err)
	defer again.Close()
	if _, err := os.Stat(stale); err == nil {
		t.Error("the next cluster kept what the dead one left")
	}
}

// A test that serves a filesystem while another one's cluster starts can end: no host of
// that has the mount.
func TestHostsHaveNoMountsOfTests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with blanks")
	must(t, os.Mkdir(dir, 0o755))
	server, err := fs.Mount(dir, &fs.Inode{}, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Unmount()) })
	c, err := cluster.Open(soon(t), "scrap")
	must(t, err)
	must(t, unix.Kill(c.Keeper(), unix.SIGKILL)) // it may be older than the mount
	eventually.True(t, "no process is left", func() bool { return len(processes(c.Disk())) == 0 })
	must(t, c.Close())
	c, err = cluster.Open(soon(t), "scrap")
	must(t, err)
	defer c.Close()
	for _, pid := range []int{c.Keeper(), c.Host("node1").Pid} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
		must(t, err)
		if strings.Contains(string(table), t.Name()) {
			t.Errorf("process %d has the mount:\n%s", pid, table)
		}
	}
}

// Tests that want hosts on which nothing runs have different ones, side by side.
func TestBareHostsAreOfOneTest(t *testing.T) {
	a, b := cluster.Bare(t), cluster.Bare(t)
	if a.Disk() == b.Disk() {
		t.Errorf("two tests have the hosts of %s", a.Disk())
	}
	must(t, a.Host("node1").LinkDown())
	if conn, err := b.Host("node2").DialContext(soon(t), "tcp", b.Host("node1").IP+":1"); err == nil {
		conn.Close()
	} else if !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a host is not reached whose namesake is unplugged: %v", err)
	}
}

func TestHostsAreHosts(t *testing.T) {
	c := cluster.Bare(t)
	tests := []struct{ name, command, want string }{
		{"name", "hostname", "node2"},
		{"names", "getent hosts node3 | cut -d' ' -f1", c.Host("node3").IP},
		{"network", "ip -o -4 addr show dev eth0 | grep -c " + c.Host("node2").IP + "/", "1"},
		{"no way out", "ip route show default | wc -l", "0"},
		{"run", "ls /run | wc -l", "0"},
		{"tmp", "cd $TMPDIR && basename $(dirname $PWD)", "node2"},
		{"directory", "pwd", getwd(t)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := c.Host("node2").Command(soon(t), "sh", "-c", test.command).CombinedOutput()
			must(t, err)
			if got := strings.TrimSpace(string(out)); got != test.want {
				t.Errorf("%s: %q, want %q", test.command, got, test.want)
			}
		})
	}
}

func getwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	return dir
}

func TestCommandIsTheProcess(t *testing.T) {
	cmd := cluster.Bare(t).Host("node1").Command(soon(t), "sleep", "60")
	must(t, cmd.Start())
	name := fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)
	eventually.True(t, "the command runs", func() bool {
		comm, _ := os.ReadFile(name)
		return string(comm) == "sleep\n"
	})
	must(t, cmd.Process.Signal(unix.SIGTERM))
	if err := cmd.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("ended by %v", err)
	}
}
