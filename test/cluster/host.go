package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"rankfs/test/cluster/internal/netns"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/hadoop"
)

// A Host is one machine of the cluster.
type Host struct {
	site.Host
	cluster *Cluster
}

// Command is a command to be run on the host, in the caller's working
// directory or Dir, with TMPDIR being the host's own. The process that it
// starts is the program itself. It is killed when the thread ends that started
// it, which is when the test binary ends however that happens; a caller that needs it
// for longer clears SysProcAttr.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	s := h.cluster.site
	return command(ctx, s, h.Pid, filepath.Join(s.HostDir(h.Name), "tmp"), name, args...)
}

// command is a command where process pid is.
func command(ctx context.Context, s *site.Site, pid int, tmp, name string, args ...string) *exec.Cmd {
	line := append([]string{"enter", strconv.Itoa(pid), tmp, name}, args...)
	c := exec.CommandContext(ctx, s.Keeper(), line...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// Java is one of Hadoop's programs, or of test/hadoop, to be run on the host:
// org.apache.hadoop.fs.FsShell is `hdfs dfs`, those in
// org.apache.hadoop.hdfs.tools are the rest.
func (h *Host) Java(ctx context.Context, class string, args ...string) *exec.Cmd {
	return h.JavaWith(ctx, hadoop.ToolOptions, class, args...)
}

// JavaWith is Java with options of the virtual machine; Java itself spares
// memory and the second compiler, which does a benchmark no justice.
func (h *Host) JavaWith(ctx context.Context, options []string, class string, args ...string) *exec.Cmd {
	line := h.cluster.site.Java(h.Name, options, class, args...)
	return h.Command(ctx, line[0], line[1:]...)
}

// JavaByFile is JavaWith for a client that takes blocks of the host's datanode
// by file, with Hadoop's native library, as short-circuit reads need it.
func (h *Host) JavaByFile(ctx context.Context, options []string, class string, args ...string) *exec.Cmd {
	s := h.cluster.site
	options = append([]string{"-Dhost.dir=" + s.HostDir(h.Name), s.Home.Native()}, options...)
	line := s.Home.Line(s.ByFile(), options, class, args...)
	return h.Command(ctx, line[0], line[1:]...)
}

// Do calls f on the host's network: sockets that f makes are there for good.
// Only what f does itself counts, not what it has other goroutines do.
func (h *Host) Do(f func() error) error { return netns.Do(h.Pid, f) }

// DialContext connects from the host to an address on its network, by name or
// number. It suits the dialers of clients for HDFS and HTTP.
func (h *Host) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if peer := h.cluster.hosts[name]; peer != nil {
		name = peer.IP // the resolver is not on the hosts' network
	}
	var d net.Dialer
	err = h.Do(func() error {
		conn, err = d.DialContext(ctx, network, net.JoinHostPort(name, port))
		return err
	})
	return conn, err
}

// Agent is a program that runs a command on a host of the cluster, as ssh does:
// AGENT HOST COMMAND...; it can be run on any of them.
func (c *layout) Agent(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	text := fmt.Sprintf("#!/bin/sh\nhost=$1\nshift\nexec %s on \"$host\" sh -c \"$*\"\n", c.site.Keeper())
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
