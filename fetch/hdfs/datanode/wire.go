package datanode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"rankfs/meta"
)

// A wire is the connection that the library has for a stream: it dials here,
// and does not close all that fail.
//
// Where a connection ends before the range does, the library makes another, and
// so on. It does so after it has lost the last bytes of a block that were asked
// for in small pieces, which is well; and where the datanode accepts each read
// and hangs up, as it does if its disk fails there, which is not: a connection
// that brought nothing is the last.
type wire struct {
	client *Client
	ctx    context.Context
	addr   string
	local  bool

	idle bool // a connection was made that has brought nothing yet; the reader's alone

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
	if tcp, ok := raw.(*net.TCPConn); ok {
		// Who closes first keeps the port for a minute; small files would use
		// up all there are. The datanode has sent what it had.
		_ = tcp.SetLinger(0)
	}
	w.use(raw)
	return &conn{Conn: raw, wire: w, buf: make([]byte, 0, bufSize)}, nil
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

// explain says of an error what the library cannot know.
func (w *wire) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("it did not send %d KiB within %v: %w", pace>>10, w.client.config.Timeout, err)
	}
	return err
}

// pace is what a datanode has to send within the timeout, or the rest of what
// was asked for: a disk that still does some work may be slower than another
// replica, but not a thousand times.
const pace = 64 << 10

// maxReply bounds what a datanode may answer before the data: a token and some
// words.
const maxReply = 64 << 10

// bufSize takes in what comes before the data of a packet: its header and the
// checksums of 64 KiB. Much more would only be copied twice.
const bufSize = 1 << 10

// A conn has a deadline for each operation, and a buffer for the library's many
// small reads; large ones go past it.
type conn struct {
	net.Conn
	wire    *wire
	buf     []byte // what was read and not yet asked for
	off     int
	greeted bool

	// What came since the datanode last kept pace, and how long that took,
	// without the time in which nobody asked it for more.
	came   int
	waited time.Duration
}

func (c *conn) Read(p []byte) (int, error) {
	if c.off < len(c.buf) {
		n := copy(p, c.buf[c.off:])
		c.off += n
		return n, nil
	}
	if len(p) >= bufSize && c.greeted {
		return c.receive(p)
	}
	n, err := c.refill()
	c.buf, c.off = c.buf[:n], 0
	if n == 0 {
		return 0, err
	}
	n = copy(p, c.buf)
	c.off = n
	return n, nil
}

// refill receives into the buffer. Of the first answer it looks at the length:
// the library has room made for as much as it says.
func (c *conn) refill() (int, error) {
	if c.greeted {
		return c.receive(c.buf[:bufSize])
	}
	c.greeted = true
	n, err := io.ReadAtLeast(readerFunc(c.receive), c.buf[:bufSize], binary.MaxVarintLen32)
	if size, _ := binary.Uvarint(c.buf[:n]); size > maxReply {
		return 0, fmt.Errorf("its answer %w: %d bytes", meta.ErrCorrupt, size)
	}
	return n, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (c *conn) receive(p []byte) (int, error) {
	begin := time.Now()
	if err := c.Conn.SetReadDeadline(begin.Add(c.wire.client.config.Timeout - c.waited)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
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

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.wire.client.config.Timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetDeadline does nothing: each operation has its own.
func (c *conn) SetDeadline(time.Time) error { return nil }
