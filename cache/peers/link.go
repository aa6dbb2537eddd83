package peers

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A sink is where an answer goes.
type sink interface {
	// size is told how long a file is, before its first byte.
	size(n uint64) error
	// room is memory for some of the next n bytes. There must be room for
	// all of them: what is too much is an error.
	room(n int) ([]byte, error)
	// filled says that the memory last given holds what was sent.
	filled() error
	// whole reports whether nothing is missing.
	whole() error
}

// A link is a connection to another node, on the side that asks. It is for
// one exchange at a time.
type link struct {
	conn  net.Conn
	timer *time.Timer // ends it when it has been idle for long
	seq   uint32
	used  bool // an exchange went well
	buf   []byte
	sum   xxhash.Digest

	heard   bool // something of the answer
	in, out uint64
}

// A patience says how long the steps of an exchange may take.
type patience struct {
	step    time.Duration // until the next frame is there
	nothing time.Duration // without a byte of data, whatever else is said
}

// ask does one exchange. After an error that is not the peer's own words the
// link is of no use.
func (l *link) ask(q request, runs []Run, to sink, p patience) error {
	l.seq++
	q.seq = l.seq
	l.heard = false
	if err := l.request(q, runs, p); err != nil {
		return err
	}
	return guard(meta.ErrNoSpace, func() error { return l.answer(to, p) })
}

func (l *link) request(q request, runs []Run, p patience) error {
	if err := l.conn.SetDeadline(time.Now().Add(p.step)); err != nil {
		return err
	}
	raw := q.encode()
	if l.buf == nil {
		l.buf = make([]byte, 4<<10)
	}
	b := append(l.buf[:0], raw[:]...)
	var sum []byte
	var err error
	if len(runs) > 0 {
		sum, err = sendRuns(l.conn, b, runs)
	} else {
		_, err = l.conn.Write(b)
	}
	greet(&l.sum, raw[:], sum)
	l.out += uint64(requestSize + len(runs)*runSize + len(sum))
	return err
}

// answer reads frames until the end.
func (l *link) answer(to sink, p patience) error {
	var failure error
	step := pace{patience: p.step}
	data := time.Now()
	for {
		if time.Since(data) > p.nothing {
			return fmt.Errorf("%w: it has brought no data for %v", meta.ErrUnavailable, p.nothing)
		}
		h, err := l.head(p.step)
		if err != nil {
			return err
		}
		if failure != nil && h.kind != kindEnd {
			return fmt.Errorf("answer %w: it goes on after it failed", meta.ErrCorrupt)
		}
		switch h.kind {
		case kindEnd:
			if failure == nil {
				failure = to.whole()
			}
			return failure
		case kindFail:
			failure, err = l.failure(h)
		case kindSize:
			err = l.size(to)
		case kindData:
			err = l.data(int(h.length), to, &step)
			data = time.Now()
		}
		if err != nil {
			return err
		}
	}
}

func (l *link) head(within time.Duration) (head, error) {
	if err := l.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return head{}, err
	}
	b := l.buf[:headSize]
	n, err := io.ReadFull(l.conn, b)
	l.in += uint64(n)
	l.heard = l.heard || n > 0
	if err != nil {
		return head{}, err
	}
	return decodeHead(b, &l.sum)
}

// data reads the data of one frame to where it belongs.
func (l *link) data(n int, to sink, step *pace) error {
	if err := l.conn.SetReadDeadline(step.step()); err != nil {
		return err
	}
	for left := n; left > 0; {
		p, err := to.room(left)
		if err != nil {
			return err
		}
		for rest := p; len(rest) > 0; {
			n, err := l.conn.Read(rest)
			_, _ = l.sum.Write(rest[:n])
			rest = rest[n:]
			l.in += uint64(n)
			if err != nil && len(rest) > 0 {
				return err
			}
		}
		if err := to.filled(); err != nil {
			return err
		}
		left -= len(p)
	}
	step.done(n)
	return nil
}

func (l *link) text(n int) ([]byte, error) {
	b := l.buf[:n]
	_, err := io.ReadFull(l.conn, b)
	_, _ = l.sum.Write(b)
	l.in += uint64(n)
	return b, err
}

func (l *link) failure(h head) (said, err error) {
	b, err := l.text(int(h.length))
	if err != nil {
		return nil, err
	}
	return decodeFailure(b), nil
}

func (l *link) size(to sink) error {
	b, err := l.text(8)
	if err != nil {
		return err
	}
	return to.size(binary.LittleEndian.Uint64(b))
}
