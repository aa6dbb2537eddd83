package wire

import (
	"context"
	"fmt"
	"sync"

	"rankfs/meta"
)

// A Client asks other nodes. Its methods may be called concurrently. The lock guards which
// nodes there are, and that none is asked once it is closed; the lock of a peer may be taken
// under it.
type Client struct {
	asking
	ctx    context.Context // until Close
	cancel context.CancelFunc
	up     *uptimes

	mu struct {
		sync.Mutex
		peers map[string]*peer
		users sync.WaitGroup // exchanges under way; none is added once closed
		shut  bool
	}
}

// New makes a client.
func New(dial Dial, c Config) *Client {
	k := &Client{asking: asking{dial: dial, config: c.withDefaults(), scratch: newScratch()}, up: newUptimes()}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.mu.peers = make(map[string]*peer)
	return k
}

// Close ends what is under way, waits for it, and closes all connections.
func (c *Client) Close() error {
	c.cancel()
	c.mu.Lock()
	c.mu.shut = true
	c.mu.Unlock()
	c.mu.users.Wait()
	c.Keep(func(string) bool { return false })
	return nil
}

// Keep forgets what is known of the nodes that are not to be kept, and closes
// their idle connections: those that left the cluster, or are back after a failure,
// as new ones are.
func (c *Client) Keep(keep func(node string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for node, p := range c.mu.peers {
		if !keep(node) {
			delete(c.mu.peers, node)
			p.retire()
		}
	}
}

// Follow says which nodes are up, as the cluster knows. What is under way with one that was up
// and is no more ends: that is sooner than a node that is silent is given up. A node that is down
// can be asked, and has its time: it may be the last that has something.
func (c *Client) Follow(up []string) { c.up.follow(up) }

// use finds a node, to be left with c.mu.users.Done.
func (c *Client) use(node string) (*peer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.shut {
		return nil, meta.Worded(meta.ErrBusy, "node %s: the daemon is shutting down", node)
	}
	p := c.mu.peers[node]
	if p == nil {
		p = newPeer(&c.asking, node)
		c.mu.peers[node] = p
	}
	c.mu.users.Add(1)
	return p, nil
}

// Pull asks a node for what q says, and puts the answer into to, all of it or an
// error. It can be
//
//   - meta.ErrUnavailable: the node cannot be reached, hangs, is gone or has
//     gone down, or is not asked now because it failed before. Another way may do.
//   - meta.ErrBusy: it, or the way to it, has enough to do.
//   - meta.ErrCorrupt: what it sent is not what it meant to send.
//   - errors.ErrUnsupported: it does not know the call.
//   - whatever is wrong on its side.
//
// Once it has returned nothing is done with to any more.
func (c *Client) Pull(ctx context.Context, node string, q Request, to Sink) error {
	return c.do(ctx, node, &exchange{request: q, to: to})
}

// Push asks a node to take what feed emits, of which there are q.Bytes, or any number
// if that is 0. It returns when the node has answered: that all is where it belongs,
// with a result of its own, or an error as of Pull, or what feed failed with. Feed is not
// called before the node takes some of it, which one without need of it does not. Once
// Push has returned feed is not running.
func (c *Client) Push(ctx context.Context, node string, q Request, feed Feed) (result []byte, err error) {
	var r resultSink
	if err := c.do(ctx, node, &exchange{request: q, feed: feed, to: &r}); err != nil {
		return nil, err
	}
	return r.b, nil
}

// do makes an exchange with a node when its turn has come.
func (c *Client) do(ctx context.Context, node string, x *exchange) error {
	if _, err := x.request.header(0); err != nil {
		return fmt.Errorf("ask node %s: %w", node, err)
	}
	p, err := c.use(node)
	if err != nil {
		return err
	}
	defer c.mu.users.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() {
		cancel(fmt.Errorf("%w: the daemon is shutting down", meta.ErrBusy))
	})()
	defer c.up.whenDown(node, func() { cancel(errWentDown) })()
	c.count.requests.Add(1)
	p.count.requests.Add(1)
	if err = p.exchange(ctx, x); err != nil {
		p.outrun(x, err)
		stopped := ctx.Err() != nil && context.Cause(ctx) != errWentDown
		c.count.failed(err, stopped)
		p.count.ended(err, stopped)
		return fmt.Errorf("ask node %s: %w", node, err)
	}
	n := total(x.request.Runs)
	c.count.items.Add(n)
	p.count.items.Add(n)
	return nil
}

// WhileUp does what a caller does before it asks a node and while it does, for as long as Pull
// and Push would go on.
func (c *Client) WhileUp(ctx context.Context, node string, ask func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.up.whenDown(node, func() { cancel(errWentDown) })()
	err := ask(ctx)
	if err != nil && context.Cause(ctx) == errWentDown {
		return errWentDown
	}
	return err
}

// BacksOff reports whether a node would not be asked now, having failed lately. Once
// it has rested the next request finds out how it is.
func (c *Client) BacksOff(node string) bool {
	p := c.known(node)
	return p != nil && p.backsOff()
}

// known is a node that was asked before, or nil.
func (c *Client) known(node string) *peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.peers[node]
}
