package namenode

import (
	"context"
	"crypto/rand"
	"sync"
	"time"
)

// A Client asks the namenodes of one nameservice. Its methods may be called
// concurrently. The lock guards the ways to the namenodes, is held for no call, and is
// taken before that of the outage.
type Client struct {
	config Config
	user   identity
	slots  chan struct{} // one for each call under way
	webs   []*web        // of Config.Web

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
		closed bool
	}
}

// maxCalls bounds the memory for replies: a page of a listing is 1 MiB.
const maxCalls = 64

// New returns a client. It connects at the first call.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, user: identity{config: config, id: make([]byte, 16)}, slots: make(chan struct{}, maxCalls)}
	rand.Read(c.user.id)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.conns = make([]*conn, len(config.Addresses))
	c.user.mu.who = config.User
	if config.Kerberos != nil {
		c.user.tickets = newTickets(c.ctx, config, &c.wg)
	}
	for _, addr := range config.Web {
		c.webs = append(c.webs, newWeb(c.ctx, &c.user, addr))
	}
	return c, nil
}

// Outage is why no namenode answers, nil if one does as far as is known.
func (c *Client) Outage() error { return c.outage.cause() }

// NoTicket is why there was no Kerberos ticket when one was last needed, nil if there was, or
// none is.
func (c *Client) NoTicket() error {
	if c.user.tickets == nil {
		return nil
	}
	return c.user.tickets.none.cause()
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
	if c.user.tickets != nil {
		c.user.tickets.forget()
	}
	return nil
}
