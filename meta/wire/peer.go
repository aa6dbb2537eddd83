package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"rankfs/meta"
)

// A peer is another node, and the connections to it.
//
// The lock is not held while a link is dialled, used or closed: an exchange that takes one has it alone.
type peer struct {
	all    *asking
	node   string
	turns  chan struct{} // one for each pull that may be under way
	pushes chan struct{} // and for each push
	count  counters

	mu struct {
		sync.Mutex
		idle    []*link // the one used last at the end
		retired bool    // no link is kept any more
		health  health
	}
}

// Asking is what all peers of a client have in common.
type asking struct {
	dial    Dial
	config  Config
	count   clientCounters
	scratch *sync.Pool // of senders
}

func newPeer(c *asking, node string) *peer {
	return &peer{all: c, node: node, turns: make(chan struct{}, c.config.Conns), pushes: make(chan struct{}, c.config.Pushes)}
}

// exchange waits for its turn, and asks. If a connection turns out to have
// ended while it was idle, it asks again on a new one: no byte of the answer
// has come then.
func (p *peer) exchange(ctx context.Context, x *exchange) error {
	turns := p.turns
	if x.feed != nil {
		turns = p.pushes
	}
	if err := p.turn(ctx, turns, x.request.quiet(p.all.config.Wait)); err != nil {
		return err
	}
	defer func() { <-turns }()
	if err := p.healthy(); err != nil {
		return err
	}
	err := p.try(ctx, x)
	if errors.Is(err, errStale) {
		p.dropIdle()
		err = p.try(ctx, x)
	}
	err = why(ctx, err)
	p.note(ctx, err)
	return err
}

// turn waits until one more exchange with the peer may be under way.
func (p *peer) turn(ctx context.Context, turns chan struct{}, wait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case turns <- struct{}{}:
		return nil
	default:
	}
	c := p.all
	c.count.waiting.Add(1)
	defer c.count.waiting.Add(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("%w: %d requests to it are under way", meta.ErrBusy, cap(turns))
	}
}

// errStale is the error of a connection that was found to have ended.
var errStale = errors.New("the connection had ended")

// try makes the exchange on one connection.
func (p *peer) try(ctx context.Context, x *exchange) error {
	c := p.all
	l, err := p.link(ctx, x.request.quiet(c.config.Dial))
	if err != nil {
		return err
	}
	unhook := context.AfterFunc(ctx, func() { abort(l.conn) })
	c.count.under.Add(1)
	ready, err := l.exchange(ctx, x)
	c.count.under.Add(-1)
	c.count.in.Add(l.in.in)
	p.count.in.Add(l.in.in)
	c.count.out.Add(l.sent)
	p.count.out.Add(l.sent)
	l.in.in, l.sent = 0, 0
	x.heard = x.heard || l.in.heard
	if unhook() && ready {
		p.keep(l)
		return err
	}
	p.discard(l)
	if l.used && !l.in.heard && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errStale, broken(err))
	}
	if errors.Is(err, meta.ErrCorrupt) {
		c.count.corrupt.Add(1)
	}
	return broken(err)
}

// link is an idle connection, or one that is made in so much time.
func (p *peer) link(ctx context.Context, dial time.Duration) (*link, error) {
	c := p.all
	if l := p.take(); l != nil {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dial)
	defer cancel()
	conn, err := c.dial(ctx, p.node)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be connected to: %w", meta.ErrUnavailable, err)
	}
	c.count.dials.Add(1)
	c.count.conns.Add(1)
	return newLink(conn, c.config.patience(), c.scratch), nil
}

func (p *peer) take() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.mu.idle); n > 0; n-- {
		l := p.mu.idle[n-1]
		p.mu.idle = p.mu.idle[:n-1]
		if l.timer.Stop() {
			return l
		}
		// Its time was up just now; the timer closes it.
	}
	return nil
}

// keep makes a link idle.
func (p *peer) keep(l *link) {
	l.used = true
	p.mu.Lock()
	retired := p.mu.retired
	if !retired {
		p.mu.idle = append(p.mu.idle, l)
		l.timer = time.AfterFunc(p.all.config.Idle, func() { p.expire(l) })
	}
	p.mu.Unlock()
	if retired {
		p.discard(l)
	}
}

// expire closes a link that was idle for long.
func (p *peer) expire(l *link) {
	p.mu.Lock()
	for i, o := range p.mu.idle {
		if o == l {
			p.mu.idle = append(p.mu.idle[:i], p.mu.idle[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	p.discard(l)
}

func (p *peer) discard(l *link) {
	abort(l.conn)
	p.all.count.conns.Add(-1)
}

// dropIdle closes all idle links: where one was found to have ended, the
// others did so as well.
func (p *peer) dropIdle() {
	for l := p.take(); l != nil; l = p.take() {
		p.discard(l)
	}
}

// retire closes the idle links, and those under way once they are idle.
func (p *peer) retire() {
	p.mu.Lock()
	p.mu.retired = true
	p.mu.Unlock()
	p.dropIdle()
}

func (p *peer) healthy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.health.admit(time.Now())
}

// backsOff reports whether the peer would not be asked now.
func (p *peer) backsOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.mu.health
	return h.failed >= failures && (h.trial || time.Now().Before(h.until))
}

// note learns from how an exchange ended. A peer that answers has not failed, even if
// it says that it cannot.
func (p *peer) note(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var said *remote
	switch {
	case err == nil || errors.As(err, &said):
		p.mu.health.answered()
	case ctx.Err() != nil || errors.Is(err, meta.ErrNoSpace) || isOwn(err):
		p.mu.health.trial = false // it could not show
	default:
		p.fail(err)
	}
}

// outrun notes how an exchange ended that had another way beside it.
func (p *peer) outrun(x *exchange, err error) {
	if errors.Is(err, ErrSlower) && !x.heard {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fail(fmt.Errorf("%w: %w", meta.ErrUnavailable, ErrSlower))
	}
}

// fail notes a failure. mu is held.
func (p *peer) fail(cause error) {
	h := &p.mu.health
	before := h.until
	h.fail(time.Now(), &p.all.config, cause)
	if h.until != before {
		p.all.config.Log.Warn("node is not asked for a while", "node", p.node, "for", h.backOff, "cause", cause)
	}
}
