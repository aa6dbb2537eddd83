package namenode

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
)

// try asks one namenode in one way. With several, none may use up the time of
// the others by being silent. A connection may have been closed while it was
// idle, so one that was there before is given a second chance.
func (c *Client) try(ctx context.Context, i int, method string, req proto.Message) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.share(), errSilent)
	defer cancel()
	if i >= len(c.config.Addresses) {
		body, err := c.webs[i-len(c.config.Addresses)].call(ctx, method, req)
		if err != nil && ctx.Err() != nil {
			err = &brokenError{context.Cause(ctx)}
		}
		return body, err
	}
	for again := false; ; again = true {
		cn, fresh, err := c.conn(i)
		if err != nil {
			return nil, err
		}
		body, err := cn.call(ctx, method, req)
		var broken *brokenError
		if fresh || again || ctx.Err() != nil || !errors.As(err, &broken) {
			return body, err
		}
	}
}

// conn is the connection to an address. fresh is whether this call began it.
func (c *Client) conn(i int) (cn *conn, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, false, errClosed
	}
	if cn := c.mu.conns[i]; cn != nil && cn.alive() {
		return cn, false, nil
	}
	cn = newConn(c.ctx, &c.user, c.config.Addresses[i])
	c.mu.conns[i] = cn
	c.wg.Go(cn.run)
	return cn, true, nil
}
