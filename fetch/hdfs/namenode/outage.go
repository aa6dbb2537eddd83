package namenode

import "sync"

// An outage is the state in which no way leads to an active namenode. The call that
// discovers it has used up its timeout. Later calls are refused at once, with the
// errors that were last seen, while a goroutine looks for the end of the outage. The lock
// guards the cause.
type outage struct {
	mu struct {
		sync.Mutex
		cause error // nil if there is none
	}
}

func (o *outage) cause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.cause
}

// set notes the cause, nil at the end, and reports whether there was none.
func (o *outage) set(cause error) (begins bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	begins = o.mu.cause == nil && cause != nil
	o.mu.cause = cause
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
	return c.tickets.why.get()
}

// everywhere reports whether a method can be asked in every way, so that it says
// something of all of them that none answers.
func (c *Client) everywhere(method string) bool {
	return len(c.webs) == 0 || webCalls[method] != nil
}
