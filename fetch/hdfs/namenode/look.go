package namenode

import (
	"context"
	"errors"
	"time"

	"rankfs/fetch/hdfs/message"
)

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
	tried := make(tries, c.config.ways())
	for _, way := range c.order() {
		ctx, cancel := context.WithTimeoutCause(c.ctx, lookTime, errUnseen)
		_, err := c.try(ctx, way, "getServerDefaults", message.New("hdfs.GetServerDefaultsRequestProto", nil))
		cancel()
		if err == nil || !elsewhere(err) {
			c.answered(way, tried)
			c.outage.set(nil)
			c.config.Log.Info("a namenode answers again", "namenode", c.config.address(way))
			return true
		}
		tried[way].addr, tried[way].err = c.config.address(way), err
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

// seekAgain is how often RPC is looked for while WebHDFS answers.
const seekAgain = 10 * time.Second

// seek looks, beside the calls, whether a namenode answers by RPC again.
func (c *Client) seek() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.mu.closed || c.mu.active < len(c.config.Addresses) || now.Sub(c.mu.sought) < seekAgain {
		return
	}
	c.mu.sought = now
	c.wg.Go(func() {
		ctx, cancel := context.WithTimeoutCause(c.ctx, c.config.Timeout, errSilent)
		defer cancel()
		for way := range c.config.Addresses {
			_, err := c.try(ctx, way, "getServerDefaults", message.New("hdfs.GetServerDefaultsRequestProto", nil))
			if err == nil {
				c.answered(way, nil)
				return
			}
		}
	})
}
