package namenode

import (
	"context"
	"errors"
	"sync"
	"time"
)

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

const (
	// lookAgain is how often the end of an outage is looked for. It costs each
	// address a connection at most.
	lookAgain = 500 * time.Millisecond
	// lookTime is for one way, so that the end is soon seen on another.
	lookTime = 2 * time.Second
)

// errUnseen is errSilent, and no reason to give up a connection that was made in
// less time than a call has.
var errUnseen = errors.New(errSilent.Error())

// Outage is why no namenode answers, nil if one does as far as is known.
func (c *Client) Outage() error { return c.outage.cause() }

// everywhere reports whether a method can be asked in every way, so that it says
// something of all of them that none answers.
func (c *Client) everywhere(method string) bool {
	return len(c.webs) == 0 || webCalls[method] != nil
}

// lost notes that a call found no way, and begins to look for one.
func (c *Client) lost(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || !c.outage.set(cause) {
		return
	}
	c.config.Log.Warn("no namenode answers: calls are refused until one does", "cause", cause)
	c.wg.Go(func() {
		for !c.look() && c.rest(lookAgain) {
		}
	})
}

// look tries each way once, and ends the outage if one leads to a namenode that
// says anything of the question.
func (c *Client) look() (over bool) {
	tried := make(attempts, c.ways())
	for _, way := range c.order() {
		ctx, cancel := context.WithTimeoutCause(c.ctx, lookTime, errUnseen)
		_, err := c.try(ctx, way, "getServerDefaults", message("hdfs.GetServerDefaultsRequestProto", nil))
		cancel()
		if err == nil || !elsewhere(err) {
			c.answered(way, tried)
			c.outage.set(nil)
			c.config.Log.Info("a namenode answers again", "namenode", c.address(way))
			return true
		}
		tried[way].addr, tried[way].err = c.address(way), err
	}
	c.outage.set(tried.problem())
	return false
}

// rest waits, and reports whether the client is still open.
func (c *Client) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}
