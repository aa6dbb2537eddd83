package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
)

// failures in a row put a peer to rest.
const failures = 3

// A health is how a peer has done of late. One that failed several times in a
// row rests; then one request is let through, and decides.
type health struct {
	failed int
	rest   time.Duration // the last
	until  time.Time
	trial  bool // a request finds out whether it is well again
	cause  error
}

// admit reports whether the peer may be asked.
func (h *health) admit(now time.Time) error {
	switch {
	case h.failed < failures:
		return nil
	case now.Before(h.until):
		return fmt.Errorf("%w: it rests for %v, having failed: %w", meta.ErrUnavailable, h.until.Sub(now).Round(time.Millisecond), h.cause)
	case h.trial:
		return fmt.Errorf("%w: it is being tried after it failed: %w", meta.ErrUnavailable, h.cause)
	}
	h.trial = true
	return nil
}

// well notes that the peer has answered.
func (h *health) well() { *h = health{} }

// ill notes a failure. Requests that were under way together fail together;
// that puts it to rest once.
func (h *health) ill(now time.Time, c *Config, cause error) {
	h.failed++
	h.trial, h.cause = false, cause
	if h.failed < failures || now.Before(h.until) {
		return
	}
	h.rest = min(max(c.Rest, 2*h.rest), c.RestMax)
	h.until = now.Add(h.rest)
}

func (p *peer) healthy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.health.admit(time.Now())
}

// rests reports whether the peer would not be asked now.
func (p *peer) rests() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.mu.health
	return h.failed >= failures && (h.trial || time.Now().Before(h.until))
}

// note learns from how an exchange ended. A peer that answers is well, even if
// it says that it cannot.
func (p *peer) note(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var said *remote
	switch {
	case err == nil || errors.As(err, &said):
		p.mu.health.well()
	case ctx.Err() != nil || errors.Is(err, meta.ErrNoSpace) || isOwn(err):
		p.mu.health.trial = false // it could not show
	default:
		p.ill(err)
	}
}

// ErrSlower is the cause with which a caller ends the context of an exchange when
// another way to the same was faster. A node that had not said a word by then has
// failed; one that was given up for any other cause could not show.
var ErrSlower = errors.New("another way was faster")

// outrun notes how an exchange ended that had another way beside it.
func (p *peer) outrun(x *exchange, err error) {
	if errors.Is(err, ErrSlower) && !x.heard {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ill(fmt.Errorf("%w: %w", meta.ErrUnavailable, ErrSlower))
	}
}

// ill notes a failure. mu is held.
func (p *peer) ill(cause error) {
	h := &p.mu.health
	before := h.until
	h.ill(time.Now(), &p.client.config, cause)
	if h.until != before {
		p.client.config.Log.Warn("node is not asked for a while", "node", p.node, "for", h.rest, "cause", cause)
	}
}
