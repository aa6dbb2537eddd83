package shortcircuit_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/hdfs/shortcircuit"
	"rankfs/test/eventually"
)

// What a datanode would not pass any more, though it has changed nothing, is given up,
// under readers too.
func TestFilesGrowOld(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	var refused atomic.Bool
	d := newDatanode(t, func(c *net.UnixConn) {
		if refused.Load() {
			refuse("", words("no such replica"))(c)
			return
		}
		pass(x.data, x.sums)(c)
	})
	c := shortcircuit.New(shortcircuit.Config{Path: d.socket, BackOff: time.Hour, Age: 50 * time.Millisecond})
	defer c.Close()
	p := make([]byte, 1000)
	for id := range uint64(2) {
		if err := read(c, block(id, 1000), p, 0); err != nil {
			t.Fatal(err)
		}
	}
	refused.Store(true)
	eventually.True(t, "the datanode is asked anew", func() bool {
		err := read(c, block(1, 1000), p, 0)
		return err != nil && strings.Contains(err.Error(), "no such replica")
	})
	eventually.True(t, "files without a reader are closed too", func() bool { return c.Snapshot().Files == 0 })
}

// Closes that hang hold no reader up, and when they are many no more files are asked for.
func TestClosesThatHang(t *testing.T) {
	x := newReplica(t, 1000, 512, 2)
	var hang atomic.Bool
	var slow peers
	t.Cleanup(slow.hear)
	d := newDatanode(t, func(c *net.UnixConn) {
		if !hang.Load() {
			pass(x.data, x.sums)(c)
			return
		}
		id, ok := asked(c)
		if !ok {
			return
		}
		sums, err := unix.Open(namedFor(id, x.sums), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			panic(err)
		}
		data := slow.lingering()
		c.Write(status(named("SUCCESS"), ""))
		c.WriteMsgUnix([]byte{0}, unix.UnixRights(data, sums), nil)
		unix.Close(data) // mostly before the client does, whose close is the last then
		unix.Close(sums)
		c.Read(make([]byte, 1))
	})
	c, p := d.client(t), make([]byte, 1000)
	within := func(id uint64) error {
		got := make(chan error, 1)
		go func() { got <- read(c, block(id, 1000), p, 0) }()
		select {
		case err := <-got:
			return err
		case <-time.After(time.Minute):
			t.Fatal("a reader waits for a close")
			return nil
		}
	}
	hang.Store(true)
	const most = 100 // far more than twice those that are kept
	id, err := uint64(0), error(nil)
	for ; id < most; id++ {
		if err = within(id); err == nil || !strings.Contains(err.Error(), "it is no file") {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "a disk does not close the files of 8 blocks") {
		t.Fatalf("of block %d: %v", id, err)
	}
	if n := d.asked.Load(); n != int64(id) {
		t.Errorf("asked %d times for %d blocks", n, id)
	}
	if s := c.Snapshot(); s.Refused != int(id)+1 || s.Files < 8 {
		t.Errorf("the client says %+v", s)
	}
	hang.Store(false)
	slow.hear()
	eventually.True(t, "all is closed", func() bool { return c.Snapshot().Files == 0 })
	if err := read(c, block(most, 1000), p, 0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Nor do those of what a datanode passes beside a block's files, or instead of them.
func TestClosesOfNoBlockThatHang(t *testing.T) {
	var slow peers
	t.Cleanup(slow.hear)
	d := newDatanode(t, func(c *net.UnixConn) {
		if !heard(c) {
			return
		}
		c.Write(status(named("SUCCESS"), ""))
		var fds []int
		for range 6 {
			fds = append(fds, slow.lingering())
		}
		c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
		for _, fd := range fds { // one of them before the client does, whose close is the last then
			go unix.Close(fd)
		}
		c.Read(make([]byte, 1))
	})
	c := d.client(t)
	got := make(chan error, 1)
	go func() { got <- read(c, block(1, 1000), make([]byte, 1000), 0) }()
	eventually.True(t, "the reader goes on", func() bool { return len(got) > 0 })
	if err := <-got; err == nil || !strings.Contains(err.Error(), "6 files") {
		t.Errorf("got %v", err)
	}
	slow.hear()
	eventually.True(t, "all is closed", func() bool { return c.Snapshot().Files == 0 })
}

// Peers hear nothing of what they are sent before they are to.
type peers struct {
	mu  sync.Mutex
	all []net.Conn
}

// hear has the closes of their sockets end.
func (s *peers) hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		go func() {
			io.Copy(io.Discard, c)
			c.Close()
		}()
	}
	s.all = nil
}

// lingering is a socket whose last close waits for its peer.
func (s *peers) lingering() (fd int) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	listen, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	defer listen.Close()
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	must(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1))
	must(unix.Connect(fd, &unix.SockaddrInet4{Port: listen.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}))
	c, err := listen.Accept()
	must(err)
	s.mu.Lock()
	s.all = append(s.all, c)
	s.mu.Unlock()
	must(unix.SetNonblock(fd, true))
	for room := 1; room > 0; { // more than its peer acknowledges, though that may be late
		for err == nil {
			_, err = unix.Write(fd, make([]byte, 64<<10))
		}
		if err != unix.EAGAIN {
			panic(err)
		}
		err = unix.EINTR
		for err == unix.EINTR {
			room, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 200)
		}
		must(err)
	}
	must(unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	return fd
}
