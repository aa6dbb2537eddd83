package namenode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"rankfs/meta"
)

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 2 * time.Second
)

// rounds is the number of times to go through n addresses. Where one of them is in
// standby a fail-over is under way, and there are more, until the deadline.
func rounds(n int) int {
	if n == 1 {
		return 2 // no other namenode could take over
	}
	return 6
}

// call calls a method about a path, which may be empty, and fills resp. addr is the
// namenode that answered.
func (c *Client) call(ctx context.Context, method, path string, req, resp proto.Message) (addr string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, errSilent)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return "", c.problem(ctx, method, path, "", fmt.Errorf("%d calls are waiting already: %w", maxCalls, ErrUnreachable))
	}
	addr, body, err := c.ask(ctx, method, req)
	if err == nil {
		_, err = shift(body, resp)
	}
	return addr, c.problem(ctx, method, path, addr, err)
}

// problem adds to an error the namenode that it is from, the method and the path.
func (c *Client) problem(ctx context.Context, method, path, addr string, err error) error {
	if err == nil {
		return nil
	}
	if addr == "" { // no namenode answered
		addr = strings.Join(c.config.Addresses, ", ")
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errSilent):
			err = fmt.Errorf("no answer within the %s that a call may take: %w", meta.FormatTime(c.config.Timeout), err)
		case cause != nil:
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	if path != "" {
		method += fmt.Sprintf(" %q", path)
	}
	return fmt.Errorf("namenode %s: %s: %w", addr, method, explain(err, c.user.who(), path))
}

// ask puts a question to one namenode after the other until one answers. addr
// is empty if none did.
func (c *Client) ask(ctx context.Context, method string, req proto.Message) (addr string, body []byte, err error) {
	if cause := c.outage.cause(); cause != nil {
		return "", nil, cause
	}
	addr, body, err = c.goAround(ctx, method, req)
	if none := addr == "" && err != nil; none && c.everywhere(method) && (ctx.Err() == nil || errors.Is(context.Cause(ctx), errSilent)) {
		c.lost(err)
	}
	return addr, body, err
}

// everywhere reports whether a method can be asked in every way, so that it says
// something of all of them that none answers.
func (c *Client) everywhere(method string) bool {
	return len(c.webs) == 0 || webCalls[method] != nil
}

// goAround is ask, whatever is known of namenodes.
func (c *Client) goAround(ctx context.Context, method string, req proto.Message) (addr string, body []byte, err error) {
	n := len(c.config.Addresses)
	tried := make(tries, c.config.ways())
	c.seek()
	for round := 0; round < rounds(n) || n > 1 && tried.standby(); round++ {
		if round > 0 && !pause(ctx, round) {
			break
		}
		for _, i := range c.order() {
			addr := c.config.address(i)
			body, err := c.try(ctx, i, method, req)
			if err == nil || !elsewhere(err) {
				c.answered(i, tried)
				return addr, body, err
			}
			tried[i].addr, tried[i].err = addr, err
			if ctx.Err() != nil {
				return "", nil, tried.problem()
			}
		}
	}
	return "", nil, tried.problem()
}

// standby reports whether a namenode said that it is not active (yet).
func (a tries) standby() bool {
	for _, t := range a {
		if isNotActive(t.err) {
			return true
		}
	}
	return false
}

// pause waits before a round, longer each time. It returns false if the call's
// time is over.
func pause(ctx context.Context, round int) bool {
	t := time.NewTimer(min(maxPause, firstPause<<min(round-1, 10)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
