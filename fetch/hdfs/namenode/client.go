package namenode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"rankfs/meta"
)

// A Client asks the namenodes of one nameservice. Its methods may be called
// concurrently. The lock guards the ways to the namenodes, is held for no call, and is
// taken before that of the outage.
type Client struct {
	config  Config
	id      []byte        // names this client to namenodes
	slots   chan struct{} // one for each call under way
	tickets *tickets      // nil without Kerberos
	webs    []*web        // of Config.Web

	// The outage is that no way leads to an active namenode. The call that discovers it
	// has used up its timeout. Later calls are refused at once, with the errors that were
	// last seen, while a goroutine looks for its end.
	outage trouble

	ctx    context.Context // of connections
	cancel context.CancelFunc
	wg     sync.WaitGroup // connections

	mu struct {
		sync.Mutex
		conns  []*conn   // of the address of that index, or nil
		active int       // the index of the way that answered last
		sought time.Time // when RPC was last looked for, while WebHDFS answers
		who    string    // the user name that namenodes know this client by
		closed bool
	}
}

const (
	// maxCalls bounds the memory for replies: a page of a listing is 1 MiB.
	maxCalls = 64

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

// New returns a client. It connects at the first call.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, id: make([]byte, 16), slots: make(chan struct{}, maxCalls)}
	rand.Read(c.id)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.conns = make([]*conn, len(config.Addresses))
	c.mu.who = config.User
	if config.Kerberos != nil {
		c.tickets = newTickets(c.ctx, config, &c.wg)
	}
	for _, addr := range config.Web {
		c.webs = append(c.webs, newWeb(c, addr))
	}
	return c, nil
}

// Close ends all connections and the calls on them.
func (c *Client) Close() error {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
	for _, w := range c.webs {
		w.close()
	}
	if c.tickets != nil {
		c.tickets.forget()
	}
	return nil
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
	return fmt.Errorf("namenode %s: %s: %w", addr, method, explain(err, c.who(), path))
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

// goAround is ask, whatever is known of namenodes.
func (c *Client) goAround(ctx context.Context, method string, req proto.Message) (addr string, body []byte, err error) {
	n := len(c.config.Addresses)
	tried := make(attempts, c.ways())
	c.seek()
	for round := 0; round < rounds(n) || n > 1 && tried.standby(); round++ {
		if round > 0 && !pause(ctx, round) {
			break
		}
		for _, i := range c.order() {
			addr := c.address(i)
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
func (a attempts) standby() bool {
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
