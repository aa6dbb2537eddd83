package datanode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A wire is the connection that the library has for a stream: it dials here,
// and does not close all that fail.
//
// Where a connection ends before the range does, the library makes another, and
// so on. It does so after it has lost the last bytes of a block that were asked
// for in small pieces, which is well; and where the datanode accepts each read
// and hangs up, as it does if its disk fails there, which is not: a connection
// that brought nothing is the last.
//
// The lock guards the connection, which is closed under it: to close the wire ends also one
// that the library dials meanwhile. It is not held for a dial, a read or a write.
type wire struct {
	client *Client
	ctx    context.Context
	addr   string
	local  bool
	guard  Guard
	proof  proof // for the guard

	// The reader's alone.
	at   int64 // in the block, up to which it has read
	idle bool  // a connection was made that has brought nothing yet

	mu struct {
		sync.Mutex
		conn   net.Conn // the last; nil if there was none
		closed bool
	}
}

var errHungUp = errors.New("it accepts the read and hangs up; its log says why")

// dial is the library's DatanodeDialFunc. The address it was told is made up.
func (w *wire) dial(_ context.Context, network, _ string) (net.Conn, error) {
	if w.idle {
		return nil, errHungUp
	}
	w.idle = true
	ctx, cancel := context.WithTimeout(w.ctx, w.client.config.Timeout)
	defer cancel()
	raw, err := w.client.config.Dial(ctx, network, w.addr)
	if err != nil {
		return nil, err
	}
	w.use(raw)
	agreed := net.Conn(newConn(raw, w))
	if len(w.guard.Allowed) > 0 {
		if agreed, err = w.guard.agree(agreed, w.proof); err != nil {
			return nil, err
		}
	}
	return newAnswer(agreed, w.at), nil
}

// use makes c the connection, in place of the one before.
func (w *wire) use(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.conn != nil {
		w.mu.conn.Close()
	}
	if w.mu.conn = c; w.mu.closed {
		c.Close()
	}
}

// close ends the connection, and with it a Read that waits.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
	if w.mu.conn != nil {
		w.mu.conn.Close()
	}
}

// explain adds to an error the cause that the library cannot know.
func (w *wire) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("it did not send %d KiB within %v: %w", pace>>10, w.client.config.Timeout, err)
	}
	if w.idle {
		return w.guard.explain(err)
	}
	return err
}

// pace is how many bytes a datanode has to send within the timeout, unless fewer are
// left to send: a disk that still does some work may be slower than another replica,
// but not a thousand times.
const pace = 64 << 10

// ahead is how many bytes behind a large read are received along with it: the header
// and the checksums of the next packet of 64 KiB. Many more would only be copied
// twice.
const ahead = 1 << 10

// A conn has a deadline for each operation, and a buffer for the library's many
// small reads. A large read bypasses the buffer, and fills it with the bytes that
// follow in the same system call: one call for each packet.
type conn struct {
	net.Conn
	wire  *wire
	raw   syscall.RawConn // nil if it is no socket
	space [ahead]byte
	buf   []byte // received, and not yet read by the library

	set time.Time // when the deadline was set last
	// The bytes that came since the datanode last kept pace, and how long reads
	// waited for them; the time between reads does not count.
	came   int
	waited time.Duration
}

func newConn(c net.Conn, w *wire) *conn {
	k := &conn{Conn: c, wire: w}
	if tcp, ok := c.(*net.TCPConn); ok {
		// The end that closes first keeps the port for a minute; many small files
		// would use up all ports. A reset loses nothing: the datanode has sent all.
		_ = tcp.SetLinger(0)
		k.raw, _ = tcp.SyscallConn()
	}
	return k
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.buf) == 0 {
		n, err := c.receive(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
	n := copy(p, c.buf)
	c.buf = c.buf[n:]
	return n, nil
}

// receive reads into p, if p is large enough for a call of its own, and the bytes
// that follow into the buffer.
func (c *conn) receive(p []byte) (direct int, err error) {
	if len(p) < ahead {
		p = nil
	}
	n, err := c.take(p, c.space[:])
	if n > len(p) {
		c.buf = c.space[:n-len(p)]
	}
	return min(n, len(p)), err
}

// take reads into p, then q, and counts.
func (c *conn) take(p, q []byte) (int, error) {
	begin := time.Now()
	if err := c.extend(begin); err != nil {
		return 0, err
	}
	n, err := c.readv(p, q)
	if c.came += n; c.came >= pace {
		c.came, c.waited = 0, 0
	} else {
		c.waited += time.Since(begin)
	}
	c.wire.client.bytes.Add(uint64(n))
	if c.wire.local {
		c.wire.client.local.Add(uint64(n))
	}
	return n, err
}

// readv waits for the first byte, and fills p, then q, with the bytes received so far.
func (c *conn) readv(p, q []byte) (n int, err error) {
	if c.raw == nil {
		if len(p) == 0 {
			p = q
		}
		return c.Conn.Read(p)
	}
	parts := [][]byte{p, q}
	if len(p) == 0 {
		parts = parts[1:]
	}
	var got error
	err = c.raw.Read(func(fd uintptr) (done bool) {
		for n, got = unix.Readv(int(fd), parts); got == unix.EINTR; {
			n, got = unix.Readv(int(fd), parts)
		}
		return got != unix.EAGAIN
	})
	if err == nil {
		err = os.NewSyscallError("readv", got)
	}
	if n = max(n, 0); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.wire.client.config.Timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// extend sets the deadline of the next reads, now and then: they are many.
func (c *conn) extend(now time.Time) error {
	timeout := c.wire.client.config.Timeout
	if now.Sub(c.set) < timeout/8 {
		return nil
	}
	c.set = now
	return c.Conn.SetReadDeadline(now.Add(timeout - c.waited))
}

// SetDeadline does nothing: each operation has its own.
func (c *conn) SetDeadline(time.Time) error { return nil }
