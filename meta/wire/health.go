package wire

import (
	"errors"
	"fmt"
	"time"

	"rankfs/meta"
)

// failures in a row have requests to a peer back off.
const failures = 3

// A health counts the failures of a peer in a row. One that failed several times in a
// row is backed off from; then one request is let through, and decides.
type health struct {
	failed  int
	backOff time.Duration // the last
	until   time.Time
	trial   bool // a request finds out whether it answers again
	cause   error
}

// admit reports whether the peer may be asked.
func (h *health) admit(now time.Time) error {
	switch {
	case h.failed < failures:
		return nil
	case now.Before(h.until):
		return fmt.Errorf("%w: it is not asked for %v, having failed: %w", meta.ErrUnavailable, h.until.Sub(now).Round(time.Millisecond), h.cause)
	case h.trial:
		return fmt.Errorf("%w: it is being tried after it failed: %w", meta.ErrUnavailable, h.cause)
	}
	h.trial = true
	return nil
}

// answered notes that the peer has answered.
func (h *health) answered() { *h = health{} }

// fail notes a failure. Requests that were under way together fail together;
// that counts once.
func (h *health) fail(now time.Time, c *Config, cause error) {
	h.failed++
	h.trial, h.cause = false, cause
	if h.failed < failures || now.Before(h.until) {
		return
	}
	h.backOff = min(max(c.BackOff, 2*h.backOff), c.BackOffMax)
	h.until = now.Add(h.backOff)
}

// ErrSlower is the cause with which a caller ends the context of an exchange when
// another way to the same was faster. A node that had not said a word by then has
// failed; one that was given up for any other cause could not show.
var ErrSlower = errors.New("another way was faster")
