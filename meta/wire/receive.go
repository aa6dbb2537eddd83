package wire

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/cespare/xxhash/v2"
)

// A receiver reads the frames of one direction of an exchange from a connection, and checks their
// sums. It is used by one goroutine at a time. Its memory is for heads and words
// alone: data is read to where it belongs.
type receiver struct {
	conn  net.Conn
	buf   []byte
	sum   xxhash.Digest
	heard bool // something of this exchange
	in    uint64
}

func newReceiver(c net.Conn) *receiver { return &receiver{conn: c, buf: make([]byte, 4<<10)} }

// begin starts on an exchange, with the sum of its request.
func (r *receiver) begin(sum xxhash.Digest) { r.sum, r.heard = sum, false }

func (r *receiver) head(within time.Duration) (head, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return head{}, err
	}
	b := r.buf[:headSize]
	n, err := io.ReadFull(r.conn, b)
	r.in += uint64(n)
	r.heard = r.heard || n > 0
	if err != nil {
		return head{}, err
	}
	return decodeHead(b, &r.sum)
}

// data reads the data of one frame to where it belongs.
func (r *receiver) data(n int, to Sink, pace *pace) error {
	if err := r.conn.SetReadDeadline(pace.wait()); err != nil {
		return err
	}
	for left := n; left > 0; {
		p, err := to.Room(left)
		if err != nil {
			return err
		}
		if err := r.fill(p); err != nil {
			return err
		}
		if err := to.Filled(); err != nil {
			return err
		}
		left -= len(p)
	}
	pace.done(n)
	return nil
}

// some reads some of p.
func (r *receiver) some(p []byte) (int, error) {
	n, err := r.conn.Read(p)
	_, _ = r.sum.Write(p[:n])
	r.in += uint64(n)
	return n, err
}

// fill reads all of p.
func (r *receiver) fill(p []byte) error {
	for len(p) > 0 {
		n, err := r.some(p)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return err
		}
	}
	return nil
}

func (r *receiver) text(n int) ([]byte, error) {
	b := r.buf[:n]
	return b, noEOF(r.fill(b))
}

func (r *receiver) failure(h head) (said, err error) {
	b, err := r.text(int(h.length))
	if err != nil {
		return nil, err
	}
	return decodeFailure(b), nil
}

func (r *receiver) number() (uint64, error) {
	b, err := r.text(8)
	return binary.LittleEndian.Uint64(b), err
}
