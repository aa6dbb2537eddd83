package namenode

import "sync"

// A trouble is why something does not go, as it was last seen; nil while it goes. The lock
// guards the cause.
type trouble struct {
	mu struct {
		sync.Mutex
		last error
	}
}

func (t *trouble) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.last
}

// set notes the cause, nil at the end, and reports whether there was none.
func (t *trouble) set(cause error) (begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins = t.mu.last == nil && cause != nil
	t.mu.last = cause
	return begins
}

// Outage is why no namenode answers, nil if one does as far as is known.
func (c *Client) Outage() error { return c.outage.cause() }

// NoTicket is why there was no Kerberos ticket when one was last needed, nil if there was, or
// none is.
func (c *Client) NoTicket() error {
	if c.tickets == nil {
		return nil
	}
	return c.tickets.none.cause()
}

// everywhere reports whether a method can be asked in every way, so that it says
// something of all of them that none answers.
func (c *Client) everywhere(method string) bool {
	return len(c.webs) == 0 || webCalls[method] != nil
}
