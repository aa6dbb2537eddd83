package hdfs_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster"
	"rankfs/test/eventually"
)

// Ranks read blocks of their host while its datanode and its socket fail: no
// byte is wrong, and no read fails, since other hosts have the blocks. It is said once
// each time, and when the datanode is right again, blocks are read by file at once.
func TestLocalBlocksFail(t *testing.T) {
	c := cluster.MountsAlone(t)
	host := c.Host("data1")
	dir := c.Dir(t)
	content := lines(5000)
	p := newPlace(t, c, "data1", "--hadoop-conf", c.ConfByFile())
	socket := p.socket()
	back := func(j *job) { j.Must("mv", "/run/aside", socket) }
	start := func(j *job) { j.check(host.Start(cluster.DataNode)) }
	folder := func(what, to string) func(*job) { return func(j *job) { j.Must(what, to, "/run") } }
	mend := func(j *job) { // and change the socket, or it would not be tried before a minute is over
		j.Must("sh", "-c", `chown 0:0 /run && chmod 755 /run && chmod 666 "$0"`, socket)
	}

	for i, fault := range []struct {
		name       string
		times      int
		begin, end func(j *job)
		says       string
	}{
		{"no socket", 2, func(j *job) { j.Must("mv", socket, "/run/aside") }, back, "there is no socket " + socket},
		{"a file for a socket", 2, func(j *job) {
			j.Must("sh", "-c", `mv "$0" /run/aside && echo >"$0"`, socket)
		}, back, socket + " is no socket"},
		{"another's socket", 2, func(j *job) {
			j.Must("mv", socket, "/run/aside")
			listenAs(j.t, 12345, j.outside(socket))
		}, back, "user 12345 listens at it"},
		{"a folder that all may write", 1, folder("chmod", "777"), mend, "folder /run of the datanode's socket can be written by all"},
		{"a folder that a group may write", 1, func(j *job) {
			folder("chgrp", "12345")(j)
			folder("chmod", "775")(j)
		}, mend, "folder /run of the datanode's socket can be written by group 12345"},
		{"another's folder", 1, folder("chown", "12345"), mend, "folder /run of the datanode's socket belongs to user 12345"},
		{"without the native library", 1, func(j *job) { j.check(host.StartPoor()) }, start, "has it Hadoop's native library?"},
		{"killed", 1, func(j *job) { j.check(host.Kill(cluster.DataNode)) }, start, "no datanode answers"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			j := p.job(t, fmt.Sprintf("%s/%d", dir, i), content, everywhere)
			t.Cleanup(func() { // also of one that failed
				j.Must("sh", "-c", `chown 0:0 /run; chmod 755 /run; [ ! -e /run/aside ] || mv /run/aside "$0"`, socket)
			})
			for n := range fault.times {
				fault.begin(j)
				j.askAnew()
				j.overTCP(fault.name, fault.says)
				if said := j.said(); said != n+1 {
					t.Errorf("at the %d. time the log says %d times that blocks are read over TCP", n+1, said)
				}
				fault.end(j)
				j.byFile(fault.name + ", and no longer")
			}
			j.end()
		})
	}

	t.Run("stopped", func(t *testing.T) { // its socket is tried again after a minute
		j := p.job(t, dir+"/stopped", content, everywhere)
		j.check(host.Stop(cluster.DataNode))
		j.askAnew()
		j.overTCP("stopped", "its answer")
		j.check(host.Continue(cluster.DataNode))
		j.byFile("continued")
		if said := j.said(); said != 1 {
			t.Errorf("the log says %d times that blocks are read over TCP", said)
		}
		j.end()
	})
	t.Run("restarted", func(t *testing.T) { // which changes no file of a block
		j := p.job(t, dir+"/restarted", content, everywhere)
		j.askAnew() // so that none is old soon
		j.byFile("asked anew")
		j.mark()
		j.goOn("in peace")
		if j.marked() == 0 {
			t.Error("no files are kept in peace")
		}
		j.check(host.Restart(cluster.DataNode))
		j.goOn("restarted")
		eventually.Within(t, waitTime, "files that were passed before are given up", func() bool { return j.marked() == 0 })
		j.byFile("restarted")
		j.end()
	})
}

// socket is that of the host's datanode.
func (d *place) socket() string {
	d.t.Helper()
	return strings.TrimSpace(d.Must("sh", "-c", "echo /run/datanode.*"))
}

// outside is a path of the host as this process calls it.
func (d *place) outside(path string) string {
	return fmt.Sprintf("/proc/%d/root%s", d.Host.Pid, path)
}

// said counts how often the log says that blocks come over TCP now.
func (j *job) said() int {
	return strings.Count(j.Log()[j.logged:], "blocks of this host are read over TCP")
}

// markAt is where no reader of a block is.
const markAt = 123456789012

// mark marks the files of blocks that the daemon has open, by their position, which it
// does not use.
func (j *job) mark() {
	j.t.Helper()
	daemon, err := unix.PidfdOpen(j.PID(), 0)
	j.check(err)
	defer unix.Close(daemon)
	for fd := range j.openFiles() {
		same, err := unix.PidfdGetfd(daemon, fd, 0)
		j.check(err)
		_, err = unix.Seek(same, markAt, unix.SEEK_SET)
		j.check(errors.Join(err, unix.Close(same)))
	}
}

// marked counts those that it has open still.
func (j *job) marked() (n int) {
	j.t.Helper()
	for fd := range j.openFiles() {
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", j.PID(), fd))
		if err == nil && strings.HasPrefix(string(info), fmt.Sprintf("pos:\t%d\n", markAt)) {
			n++
		}
	}
	return n
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenAs has a user listen at a socket that root has made, and say nothing.
func listenAs(t testing.TB, user int, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { check(t, unix.Close(fd)) })
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	check(t, os.Chmod(path, 0o666))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the user that it is
		_, _, no := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user))
		if no != 0 {
			done <- no
			return
		}
		done <- syscall.Listen(fd, 16)
	}()
	check(t, <-done)
}
