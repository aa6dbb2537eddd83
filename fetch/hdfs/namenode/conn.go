package namenode

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

// A conn is one connection to one namenode, from the dial to its end; it is
// not opened again. Calls put packets into out and wait for replies by id.
//
// The lock guards which calls wait, when the namenode said something last, and why the
// connection ended. That of the Client is taken before it.
type conn struct {
	user *identity
	addr string
	out  chan []byte // packets to be written

	ctx    context.Context // ends when the connection is to end
	cancel context.CancelFunc
	done   chan struct{} // closed when err is set

	mu struct {
		sync.Mutex
		next    int32
		waiting map[int32]chan<- reply
		heard   time.Time // when the namenode said something last
		err     error     // why it ended
	}
}

// maxIdle is how long an unused connection is kept: half the time that a careful
// firewall allows. A new connection takes a millisecond.
const maxIdle = 30 * time.Second

var errIdle = errors.New("connection was idle")

func newConn(ctx context.Context, user *identity, addr string) *conn {
	c := &conn{user: user, addr: addr, out: make(chan []byte), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.mu.waiting = make(map[int32]chan<- reply)
	return c
}

func (c *conn) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// end gives up the connection and all calls on it; the first cause counts.
func (c *conn) end(cause error) {
	defer c.cancel()
	if !isFinal(cause) {
		cause = &brokenError{cause}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return
	}
	c.mu.err = cause
	for _, to := range c.mu.waiting {
		to <- reply{err: cause} // has room for one
	}
	c.mu.waiting = nil
	close(c.done)
}

// run is the life of the connection.
func (c *conn) run() {
	nc, w, err := c.open()
	if err != nil {
		c.end(err)
		return
	}
	unhook := context.AfterFunc(c.ctx, func() { nc.Close() })
	defer unhook()
	defer nc.Close()
	var writer sync.WaitGroup
	writer.Go(func() { c.end(c.write(nc, w)) })
	defer writer.Wait()
	c.end(c.read(nc, w))
}

// open dials, within the time that a call may take, and greets.
func (c *conn) open() (net.Conn, *wrapping, error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.user.config.share(), errSilent)
	defer cancel()
	nc, err := c.user.config.Dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, nil, err
	}
	unhook := context.AfterFunc(ctx, func() { nc.Close() })
	w, err := c.user.greet(ctx, nc, c.addr)
	if !unhook() {
		err = context.Cause(ctx)
	}
	if err != nil {
		nc.Close()
	}
	return nc, w, err
}

// write sends packets until the connection ends or has been idle for too long.
func (c *conn) write(nc net.Conn, w *wrapping) error {
	idle := time.NewTicker(maxIdle)
	defer idle.Stop()
	busy := true
	for {
		select {
		case b := <-c.out:
			busy = true
			if err := c.send(nc, w, b); err != nil {
				return err
			}
		case <-idle.C:
			if !busy && c.unused() {
				return errIdle
			}
			busy = false
		case <-c.ctx.Done():
			return errClosed
		}
	}
}

func (c *conn) send(nc net.Conn, w *wrapping, b []byte) (err error) {
	if w != nil {
		if b, err = w.wrap(b); err != nil {
			return err
		}
	}
	nc.SetWriteDeadline(time.Now().Add(c.user.config.Timeout))
	_, err = nc.Write(b)
	return err
}

func (c *conn) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.waiting) == 0
}

// read hands out replies until the connection ends.
func (c *conn) read(nc net.Conn, w *wrapping) error {
	var r io.Reader = bufio.NewReaderSize(nc, 64<<10)
	if w != nil {
		r = w.reader(r)
	}
	for {
		b, err := readFrame(r, maxFrame)
		if errors.Is(err, io.EOF) {
			return errors.New("the namenode closed the connection")
		}
		if err != nil {
			return err
		}
		if err := c.deliver(b); err != nil {
			return err
		}
	}
}

func (c *conn) deliver(b []byte) error {
	id, r, err := parseReply(b)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.heard = time.Now()
	if to := c.mu.waiting[id]; to != nil { // else its call did not want to wait longer
		delete(c.mu.waiting, id)
		to <- r // has room for one
	}
	return nil
}

// call asks and waits. An error is a brokenError if it is not about the call.
func (c *conn) call(ctx context.Context, method string, req proto.Message) ([]byte, error) {
	id, answer, err := c.enter()
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	b, err := packet(c.user.id, id, methodHeader(method), req)
	if err != nil {
		c.leave(id)
		return nil, err
	}
	out := c.out
	for {
		select {
		case out <- b:
			out = nil
		case r := <-answer:
			return r.body, r.err
		case <-ctx.Done():
			c.leave(id)
			c.suspect(ctx, asked)
			return nil, &brokenError{context.Cause(ctx)}
		}
	}
}

// enter gives a call its id and the place where its reply will be.
func (c *conn) enter() (int32, <-chan reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return 0, nil, c.mu.err
	}
	answer := make(chan reply, 1)
	c.mu.next = (c.mu.next + 1) & (1<<31 - 1)
	c.mu.waiting[c.mu.next] = answer
	return c.mu.next, answer, nil
}

func (c *conn) leave(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.waiting, id)
}

// suspect gives up a connection on which nothing at all came in all the time
// that a call may wait: the host may be gone without a word.
func (c *conn) suspect(ctx context.Context, asked time.Time) {
	c.mu.Lock()
	silent := c.mu.heard.Before(asked)
	c.mu.Unlock()
	if silent && errors.Is(context.Cause(ctx), errSilent) {
		c.end(errSilent)
	}
}
