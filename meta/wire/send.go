package wire

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

const (
	// gathered is how much of small records is put together before it is
	// sent: a call of the kernel for each would cost more than the copy.
	gathered = 64 << 10
	// direct is from what size on a piece is sent from where it stands.
	direct = 32 << 10
	// tlsRecord is the most that TLS encrypts at a time. The start of a direct piece
	// shares a record with its head.
	tlsRecord = 16 << 10
	// sumBytes are summed and then sent while the processor still has them.
	sumBytes = 64 << 10
)

// errStalled ends a request if its data does not come in time.
var errStalled = fmt.Errorf("%w: the data did not come in time", meta.ErrUnavailable)

// An Answer is where a Call puts what was asked of it.
type Answer struct{ out *sender }

// Size tells how much will be emitted, where the request does not say so.
func (a Answer) Size(n uint64) { a.out.expect(n) }

// AtMost lets what is emitted be any number of bytes up to n, instead of as many as were asked
// for. The other node finds by what it gets whether that is all.
func (a Answer) AtMost(n uint64) { a.out.atMost(n) }

// Emit sends p, which may be mapped memory, and is not used after it returned.
// A call that returned an error of Emit is told why by its context.
func (a Answer) Emit(p []byte) error { return a.out.emit(p) }

// A sender writes one direction of an exchange to a connection, and then that of
// another: an answer, or what is pushed. Its memory is a scratch, however much it
// sends: all but small pieces are sent from where they stand. Between exchanges it
// has none.
//
// What the lock guards is the connection's sending side above all, so it is
// held while that is written to: for a patience at most.
type sender struct {
	conn     net.Conn
	patience patience
	timer    *time.Timer // of the next tick
	scratch  *sync.Pool  // of *[]byte

	mu struct {
		sync.Mutex
		sum     xxhash.Digest
		spare   *[]byte // of scratch, while there is an exchange; out uses it
		out     []byte  // frames that are not sent yet; the last may be open
		open    int     // where in out the open frame begins; its end if there is none
		pace    pace
		left    uint64 // bytes that are still to be emitted for an answer
		fewer   bool   // or less than that
		sent    uint64
		err     error // of the connection; nothing is sent after it
		stalled func(error)
		held    bool      // there is data, but the other side does not let it be sent
		data    time.Time // when there was data, or it began
		last    time.Time // when something was sent
	}
}

func newSender(c net.Conn, p patience, scratch *sync.Pool) *sender {
	s := &sender{conn: c, patience: p, scratch: scratch}
	s.timer = time.AfterFunc(time.Hour, s.tick)
	s.timer.Stop()
	return s
}

func newScratch() *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]byte, 0, gathered+maxText+4*headSize)
		return &b
	}}
}

// begin starts an answer of so many bytes, or with none what is pushed. If no data
// comes for long, stalled is called; it must not call back. Sum is that of the request.
func (s *sender) begin(sum xxhash.Digest, bytes uint64, stalled func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.mu
	m.sum, m.left, m.fewer, m.sent, m.stalled = sum, bytes, false, 0, stalled
	m.spare = s.scratch.Get().(*[]byte)
	m.out, m.open = (*m.spare)[:0], 0
	m.held = false
	m.pace = pace{patience: s.patience.take}
	m.data = time.Now()
	m.last = m.data
	s.timer.Reset(s.patience.beat)
}

// tick sends what waits to be gathered, or word that there is nothing yet.
func (s *sender) tick() {
	if !s.mu.TryLock() { // something is being sent
		s.timer.Reset(s.patience.beat)
		return
	}
	defer s.mu.Unlock()
	m := &s.mu
	if m.stalled == nil || m.err != nil {
		return
	}
	if m.held { // the peer does not wait for it
		s.timer.Reset(s.patience.beat)
		return
	}
	if time.Since(m.data) >= s.patience.nothing {
		m.stalled(errStalled)
		return
	}
	quiet := time.Since(m.last)
	if quiet >= s.patience.beat {
		if s.pending() == 0 {
			s.control(head{kind: kindWait}, nil)
		}
		_ = s.flush() // kept
		quiet = 0
	}
	s.timer.Reset(s.patience.beat - quiet)
}

// emit sends p of an answer, which is not needed afterwards.
func (s *sender) emit(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.mu
	if uint64(len(p)) > m.left {
		return fmt.Errorf("data %w: it is longer than was asked for", meta.ErrInvalid)
	}
	m.left -= uint64(len(p))
	return s.put(p)
}

// push sends p of what is pushed, which is not needed afterwards.
func (s *sender) push(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(p)
}

// put sends p, whatever it is of. mu is held.
func (s *sender) put(p []byte) error {
	err := guard(meta.ErrStale, func() error { return s.add(p) })
	s.mu.data = time.Now()
	if s.mu.err == nil {
		s.mu.err = err // a fault leaves half a frame
	}
	return err
}

// hold says that there is data which the other side does not let be sent, or that it
// does now. What it let be sent before is on its way then.
func (s *sender) hold(held bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held, s.mu.data = held, time.Now()
	if held {
		return s.flush()
	}
	return nil
}

// grant lets the other side send n bytes more.
func (s *sender) grant(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control(head{kind: kindCredit, length: 8}, binary.LittleEndian.AppendUint64(nil, n))
	return s.flush()
}

// moved says that data came in, which counts as some that goes out.
func (s *sender) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.data = time.Now()
}

// expect tells the size of a file, and that so much will be emitted.
func (s *sender) expect(size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.left = size
	s.control(head{kind: kindSize, length: 8}, binary.LittleEndian.AppendUint64(nil, size))
}

func (s *sender) atMost(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.left, s.mu.fewer = n, true
}

// end sends the rest and how it ended, and says how much all came to on the wire. Its
// error is that of the connection.
func (s *sender) end(failure error) (sent uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.mu
	s.timer.Stop()
	m.stalled = nil
	if failure == nil && m.left > 0 && !m.fewer {
		failure = fmt.Errorf("data %w: it is %d bytes shorter than was asked for", meta.ErrInvalid, m.left)
	}
	if failure != nil {
		text := encodeFailure(failure)
		s.control(head{kind: kindFail, length: uint32(len(text))}, text)
	}
	s.control(head{kind: kindEnd}, nil)
	err = s.flush()
	s.scratch.Put(m.spare)
	m.spare, m.out = nil, nil
	return m.sent, err
}

// add puts p into frames. mu is held, as for all below.
func (s *sender) add(p []byte) error {
	m := &s.mu
	for len(p) > 0 && m.err == nil {
		n := min(len(p), gathered-s.pending())
		switch {
		case len(p) >= direct:
			n = min(len(p), maxFrame)
			s.straight(p[:n])
		case s.pending() == 0:
			m.out = append(m.out, make([]byte, headSize)...)
			fallthrough
		default:
			m.out = append(m.out, p[:n]...)
			if s.pending() == gathered {
				_ = s.flush() // kept
			}
		}
		p = p[n:]
	}
	return m.err
}

// straight sends p as a frame of its own.
func (s *sender) straight(p []byte) {
	m := &s.mu
	s.seal()
	m.out = append(m.out, make([]byte, headSize)...)
	head{kind: kindData, length: uint32(len(p))}.encode(m.out[m.open:], &m.sum)
	n := min(len(p), tlsRecord-len(m.out)%tlsRecord)
	_, _ = m.sum.Write(p[:n])
	m.out = append(m.out, p[:n]...)
	m.open = len(m.out)
	_ = s.flush() // kept
	for p = p[n:]; len(p) > 0 && m.err == nil; p = p[n:] {
		n = min(len(p), sumBytes)
		_, _ = m.sum.Write(p[:n])
		s.write(p[:n])
	}
}

// pending is the number of bytes that wait in the open frame.
func (s *sender) pending() int { return max(0, len(s.mu.out)-s.mu.open-headSize) }

// seal closes the open frame.
func (s *sender) seal() {
	m := &s.mu
	if n := s.pending(); n > 0 {
		head{kind: kindData, length: uint32(n)}.encode(m.out[m.open:], &m.sum)
		_, _ = m.sum.Write(m.out[m.open+headSize:])
	}
	m.open = len(m.out)
}

func (s *sender) control(h head, text []byte) {
	m := &s.mu
	s.seal()
	m.out = append(m.out, make([]byte, headSize)...)
	h.encode(m.out[m.open:], &m.sum)
	_, _ = m.sum.Write(text)
	m.out = append(m.out, text...)
	m.open = len(m.out)
}

func (s *sender) flush() error {
	s.seal()
	if len(s.mu.out) > 0 {
		s.write(s.mu.out)
	}
	s.mu.out, s.mu.open = s.mu.out[:0], 0
	return s.mu.err
}

func (s *sender) write(p []byte) {
	m := &s.mu
	if m.err != nil {
		return
	}
	if m.err = s.conn.SetWriteDeadline(m.pace.wait()); m.err != nil {
		return
	}
	n, err := s.conn.Write(p)
	m.pace.done(n)
	m.sent += uint64(n)
	m.err, m.last = err, time.Now()
}
