package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A link is a connection to another node, on the side that asks. It is for
// one exchange at a time.
type link struct {
	conn     net.Conn
	patience patience
	timer    *time.Timer // ends it when it has been idle for long
	seq      uint32
	used     bool // an exchange went well
	buf      []byte
	in       *receiver
	out      *sender // nil before the first push
	scratch  *sync.Pool
	sent     uint64
}

func newLink(c net.Conn, p patience, scratch *sync.Pool) *link {
	return &link{conn: c, patience: p, buf: make([]byte, 4<<10), in: newReceiver(c), scratch: scratch}
}

// exchange does one, and reports whether the link is ready for another: the node has
// answered, if only that it cannot.
func (l *link) exchange(ctx context.Context, x *exchange) (ready bool, err error) {
	sum, err := l.request(x.request)
	if err != nil {
		return false, err
	}
	var p *push
	if x.feed != nil {
		if l.out == nil {
			l.out = newSender(l.conn, l.patience, l.scratch)
		}
		p = beginPush(ctx, l.conn, l.out, x, sum)
	}
	err = guard(meta.ErrNoSpace, func() error { return l.answer(x, p) })
	if p != nil {
		ready, err = p.finish(err)
		l.sent += p.onWire
		return ready, err
	}
	return answered(err), err
}

// request sends q, and returns the sum with which the exchange begins.
func (l *link) request(q Request) (sum xxhash.Digest, err error) {
	l.seq++
	l.in.heard = false
	h, err := q.header(l.seq)
	if err != nil {
		return sum, err
	}
	if err := l.conn.SetDeadline(time.Now().Add(q.quiet(l.patience.frame))); err != nil {
		return sum, err
	}
	raw := h.encode()
	b := append(l.buf[:0], raw[:]...)
	var rest []byte // the sum of what follows
	switch {
	case h.body:
		rest, err = sendBody(l.conn, b, q.Body)
	case len(q.Runs) > 0:
		rest, err = sendRuns(l.conn, b, q.Runs)
	default:
		_, err = l.conn.Write(b)
	}
	greet(&sum, raw[:], rest)
	l.in.begin(sum)
	l.sent += uint64(requestSize + h.follows() + len(rest))
	return sum, err
}

// answer reads frames until the end. P is what is pushed meanwhile, nil for nothing.
func (l *link) answer(x *exchange, p *push) error {
	var failure error
	to, quiet := x.to, x.request.quiet(l.patience.frame)
	pace := pace{patience: quiet}
	data := time.Now()
	for {
		if time.Since(p.owed(data)) > l.patience.nothing {
			return fmt.Errorf("%w: it has brought and taken no data for %v", meta.ErrUnavailable, l.patience.nothing)
		}
		h, err := l.in.head(quiet)
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
		case kindCredit:
			err = l.credit(p)
		case kindData:
			err = l.in.data(int(h.length), to, &pace)
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

func (l *link) credit(p *push) error {
	n, err := l.in.number()
	if err != nil {
		return err
	}
	return p.grant(n)
}
