package peers

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"rankfs/meta/wire"
)

// A Config says how a Client asks. What is zero gets its default.
type Config struct {
	MaxFile    int64         // bounds the files that are taken
	HedgeMin   time.Duration // before this a hedge never begins
	HedgeBlind time.Duration // when it begins while too little is known of a node
}

func (c Config) withDefaults() Config {
	if c.MaxFile == 0 {
		c.MaxFile = 1 << 40 // the index of 2^36 records
	}
	if c.HedgeMin == 0 {
		c.HedgeMin = 20 * time.Millisecond
	}
	if c.HedgeBlind == 0 {
		c.HedgeBlind = time.Second
	}
	return c
}

// A Client asks other nodes for records and files. Its methods may be called
// concurrently. The transport is its caller's, to close. The lock guards what is known of
// how long nodes take; no other is taken under it, and no node is asked.
type Client struct {
	wire   *wire.Client
	config Config
	count  struct{ hedges, won atomic.Uint64 }

	mu struct {
		sync.Mutex
		times map[string]*[classes]times // by node
	}
}

// New makes a client.
func New(w *wire.Client, c Config) *Client {
	k := &Client{wire: w, config: c.withDefaults()}
	k.mu.times = make(map[string]*[classes]times)
	return k
}

// Keep forgets what is known of the nodes that are not to be kept: those that
// left the cluster.
func (c *Client) Keep(keep func(node string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.mu.times, func(node string, _ *[classes]times) bool { return !keep(node) })
}

// BacksOff reports whether a node would not be asked now, having failed lately. Once
// it has rested the next request finds out how it is.
func (c *Client) BacksOff(node string) bool { return c.wire.BacksOff(node) }

// Hedges returns how many requests got a second way to their bytes beside the
// node, and how many of these were faster by it.
func (c *Client) Hedges() (begun, won uint64) { return c.count.hedges.Load(), c.count.won.Load() }

// learn notes how long a request to a node took.
func (c *Client) learn(node string, bytes uint64, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.mu.times[node]
	if of == nil {
		of = new([classes]times)
		c.mu.times[node] = of
	}
	of[classOf(bytes)].add(took)
}

// usual is the time that a request of that size to a node mostly takes.
func (c *Client) usual(node string, bytes uint64) (d time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.mu.times[node]
	if of == nil {
		return 0, false
	}
	return of[classOf(bytes)].p95()
}

// Want has the records wanted of one node.
type Want struct {
	Dataset ID
	Runs    []Run
	// Wait is how long the node may let the request wait for its turn. It
	// answers that it is busy otherwise.
	Wait time.Duration
	// Kept asks for what the node need not fetch first; it answers that it is
	// busy otherwise.
	Kept bool
	// Alone has no second way begin before the node has failed: it would cost as much as
	// all of a chunk.
	Alone bool
}

// Gather fills dst, one part after the other, with the bytes of the records
// that are wanted, all of it or an error: one of wire.Client.Pull, or whatever is
// wrong with the records on the node's side.
//
// What dst holds after an error is undefined, but nothing writes there any
// more.
func (c *Client) Gather(ctx context.Context, node string, w Want, dst [][]byte) error {
	if len(w.Runs) == 0 {
		return fmt.Errorf("ask node %s: %w", node, errNoRuns)
	}
	q := wire.Request{Call: callRecords, Kept: w.Kept, Wait: w.Wait, Bytes: length(dst), ID: w.Dataset, Runs: w.Runs}
	begin := time.Now()
	if err := c.wire.Pull(ctx, node, q, wire.NewScatter(dst)); err != nil {
		return err
	}
	c.learn(node, q.Bytes, time.Since(begin))
	return nil
}

func length(parts [][]byte) (n uint64) {
	for _, p := range parts {
		n += uint64(len(p))
	}
	return n
}

// Fetch brings an index by its hash. The file at path is whole, or not there.
func (c *Client) Fetch(ctx context.Context, node string, hash ID, path string) error {
	d, err := newDownload(path, hash, uint64(c.config.MaxFile))
	if err != nil {
		return fmt.Errorf("fetch %x: %w", hash[:8], err)
	}
	err = c.wire.Pull(ctx, node, wire.Request{Call: callFile, ID: hash}, d)
	if err = d.finish(err); err != nil {
		return fmt.Errorf("fetch %x: %w", hash[:8], err)
	}
	return nil
}
