package wire

import (
	"fmt"
	"net"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A link is a connection to another node, on the side that asks. It is for
// one exchange at a time.
type link struct {
	conn  net.Conn
	timer *time.Timer // ends it when it has been idle for long
	seq   uint32
	used  bool // an exchange went well
	buf   []byte
	in    *receiver
	sent  uint64
}

func newLink(c net.Conn) *link { return &link{conn: c, buf: make([]byte, 4<<10), in: newReceiver(c)} }

// A patience says how long the steps of an exchange may take.
type patience struct {
	step    time.Duration // until the next frame is there
	nothing time.Duration // without a byte of data, whatever else is said
}

// pull does one exchange. After an error that is not the peer's own words the
// link is of no use.
func (l *link) pull(q Request, to Sink, p patience) error {
	if _, err := l.request(q, p); err != nil {
		return err
	}
	return guard(meta.ErrNoSpace, func() error { return l.answer(to, p) })
}

// request sends q, and returns the sum with which the exchange begins.
func (l *link) request(q Request, p patience) (sum xxhash.Digest, err error) {
	l.seq++
	l.in.heard = false
	h, err := q.header(l.seq)
	if err != nil {
		return sum, err
	}
	if err := l.conn.SetDeadline(time.Now().Add(p.step)); err != nil {
		return sum, err
	}
	raw := h.encode()
	b := append(l.buf[:0], raw[:]...)
	var runsSum []byte
	if len(q.Runs) > 0 {
		runsSum, err = sendRuns(l.conn, b, q.Runs)
	} else {
		_, err = l.conn.Write(b)
	}
	greet(&sum, raw[:], runsSum)
	l.in.begin(sum)
	l.sent += uint64(requestSize + len(q.Runs)*runSize + len(runsSum))
	return sum, err
}

// answer reads frames until the end.
func (l *link) answer(to Sink, p patience) error {
	var failure error
	step := pace{patience: p.step}
	data := time.Now()
	for {
		if time.Since(data) > p.nothing {
			return fmt.Errorf("%w: it has brought no data for %v", meta.ErrUnavailable, p.nothing)
		}
		h, err := l.in.head(p.step)
		if err != nil {
			return err
		}
		if failure != nil && h.kind != kindEnd {
			return fmt.Errorf("answer %w: it goes on after it failed", meta.ErrCorrupt)
		}
		switch h.kind {
		case kindEnd:
			if failure == nil {
				failure = to.Whole()
			}
			return failure
		case kindFail:
			failure, err = l.in.failure(h)
		case kindSize:
			err = l.size(to)
		case kindData:
			err = l.in.data(int(h.length), to, &step)
			data = time.Now()
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) size(to Sink) error {
	n, err := l.in.number()
	if err != nil {
		return err
	}
	return to.Size(n)
}
