package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A push is sent in an exchange beside its request, by a goroutine of its own:
// the answer is read meanwhile. Nothing is sent that the other node has not granted; a
// node that does not know the call grants nothing, and is sent nothing that it could
// take for another request.
//
// The lock guards what the goroutine that sends and the one that reads the answer both use.
type push struct {
	conn   net.Conn
	out    *sender         // of the connection
	ctx    context.Context // of the feed
	cancel context.CancelCauseFunc
	bytes  uint64 // in all, 0 if that is not known
	done   chan struct{}

	// Of the goroutine, and of others once done is closed.
	began, whole bool   // something was granted; all was sent, and its end
	sent, onWire uint64 // bytes of the feed, and with their frames
	own          error  // of the feed
	broken       error  // of the connection

	opened chan struct{} // closed when something was granted
	more   chan struct{} // has an element when something was granted lately
	mu     struct {
		sync.Mutex
		open    bool
		granted uint64    // that is not sent yet
		owes    bool      // the other node has to grant more, or to answer
		since   time.Time // then
	}
}

// beginPush begins to send what x feeds.
func beginPush(ctx context.Context, c net.Conn, out *sender, x *exchange, sum xxhash.Digest) *push {
	p := &push{conn: c, out: out, bytes: x.request.Bytes, done: make(chan struct{}), opened: make(chan struct{}), more: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.owe(true)
	go func() {
		defer close(p.done)
		p.run(x.feed, sum)
	}()
	return p
}

// run sends all, or as much as the feed emits, and why that is not all.
func (p *push) run(feed Feed, sum xxhash.Digest) {
	if !p.wait() {
		return
	}
	p.out.begin(sum, 0, p.cancel)
	p.began = true
	p.owe(false)
	err := feed(p.ctx, p.emit)
	if p.ctx.Err() != nil {
		err = context.Cause(p.ctx) // no feed that was ended is whole
	}
	if err == nil && p.sent < p.bytes {
		err = fmt.Errorf("data %w: it is %d bytes shorter than was said", meta.ErrInvalid, p.bytes-p.sent)
	}
	if p.broken == nil {
		p.own = err
	}
	n, lost := p.out.end(err)
	p.onWire, p.broken, p.whole = n, lost, err == nil && lost == nil
	p.owe(true)
	if lost != nil && (p.own != nil || errors.Is(lost, os.ErrDeadlineExceeded)) {
		abort(p.conn) // the other node waits for the rest of a frame, or takes nothing
	}
}

// wait waits until something was granted, and reports whether it was: then the other
// node waits for an end, whatever became of the exchange.
func (p *push) wait() bool {
	select {
	case <-p.opened:
	case <-p.ctx.Done():
	}
	select {
	case <-p.opened:
		return true
	default:
		return false
	}
}

// emit sends b when that is granted.
func (p *push) emit(b []byte) error {
	if p.bytes > 0 && uint64(len(b)) > p.bytes-p.sent {
		return fmt.Errorf("data %w: it is longer than was said", meta.ErrInvalid)
	}
	for len(b) > 0 {
		n, err := p.take(len(b))
		if err != nil {
			return err
		}
		if err = p.out.push(b[:n]); err != nil {
			if !errors.Is(err, meta.ErrStale) { // which is a fault of b
				p.broken = err
			}
			return err
		}
		p.sent += uint64(n)
		b = b[n:]
	}
	return nil
}

// take waits until something was granted, and takes up to n bytes of it.
func (p *push) take(n int) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	if got := p.spend(n); got > 0 {
		return got, nil
	}
	if p.broken = p.out.hold(true); p.broken != nil {
		return 0, p.broken
	}
	p.owe(true)
	for {
		select {
		case <-p.more:
		case <-p.ctx.Done():
			return 0, context.Cause(p.ctx)
		}
		if got := p.spend(n); got > 0 {
			p.owe(false)
			return got, p.out.hold(false)
		}
	}
}

func (p *push) spend(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := min(uint64(n), p.mu.granted)
	p.mu.granted -= got
	return int(got)
}

// owe notes whether the other node has to do something now.
func (p *push) owe(owes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.owes, p.mu.since = owes, time.Now()
}

// owed is since when the other node has done nothing, where its last data came at some
// time: what it cannot do before it has got something does not count.
func (p *push) owed(data time.Time) time.Time {
	if p == nil {
		return data
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.mu.owes:
		return time.Now()
	case p.mu.since.After(data):
		return p.mu.since
	}
	return data
}

// grant notes that the other node takes n bytes more.
func (p *push) grant(n uint64) error {
	if p == nil {
		return fmt.Errorf("answer %w: it takes data, where nothing is pushed", meta.ErrCorrupt)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 || n > maxBytes || p.mu.granted > maxBytes-n {
		return fmt.Errorf("answer %w: it takes %d bytes more, beside %d", meta.ErrCorrupt, n, p.mu.granted)
	}
	p.mu.granted += n
	if !p.mu.open {
		p.mu.open = true
		close(p.opened)
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
	return nil
}

// errAnswered ends a feed of which nothing is wanted any more.
var errAnswered = errors.New("the other node has answered before it had all")

// finish ends what is still being sent, when reading the answer ended so. It reports
// whether the link is ready for another exchange, and what came of this one.
func (p *push) finish(answer error) (ready bool, err error) {
	whole := answered(answer)
	if !whole {
		abort(p.conn)
	}
	p.cancel(errAnswered)
	<-p.done
	ready = whole && p.broken == nil
	switch {
	case p.own != nil && p.own != errAnswered:
		return ready, &own{p.own}
	case answer == nil && p.began && !p.whole:
		return false, fmt.Errorf("answer %w: it is a success before all was sent", meta.ErrCorrupt)
	case !whole && errors.Is(p.broken, os.ErrDeadlineExceeded):
		return false, p.broken
	}
	return ready, answer
}

// answered reports whether an exchange that ended so was answered to its end.
func answered(err error) bool {
	var said *remote
	return err == nil || errors.As(err, &said)
}
