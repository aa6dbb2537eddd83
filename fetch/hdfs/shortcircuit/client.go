package shortcircuit

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// Config says how datanodes of this host are reached.
type Config struct {
	// Path is dfs.domain.socket.path: an absolute path, in which _PORT stands for
	// the port of the datanode's data transfer.
	Path string
	// Timeout bounds each exchange with a datanode. One that is well answers at
	// once; one that is stopped is asked again after Rest.
	Timeout time.Duration
	// Rest is how long a socket is not tried again after it failed.
	Rest time.Duration
	// Keep bounds the blocks whose files are kept open without a reader, each with
	// two descriptors. Hadoop's client keeps 256.
	Keep int
	Log  *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Rest = cmp.Or(c.Rest, time.Minute)
	c.Keep = cmp.Or(c.Keep, 256)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Block identifies the block to ask a datanode for.
type Block struct {
	Pool  string
	ID    uint64
	Stamp uint64
	Size  int64  // as the namenode knows it; its files may have more, not less
	Addr  string // of the datanode's data transfer

	Header proto.Message // hdfs/v2's ExtendedBlockProto
	Token  proto.Message // that a datanode of a secure cluster wants to see; may be nil
}

type key struct {
	pool      string
	id, stamp uint64
	addr      string
}

func (b Block) key() key { return key{b.Pool, b.ID, b.Stamp, b.Addr} }

// A Client asks datanodes for blocks' files and keeps them open for the next
// reader. Its methods may be called concurrently.
type Client struct {
	config Config
	opened atomic.Int64 // Files that are open, in use or kept

	// mu guards the tables of sockets and files. A goroutine that holds it may close a
	// file, or check one by fstat(2), which asks no disk; it never waits for a datanode.
	mu struct {
		sync.Mutex
		closed  bool
		sockets map[string]*socket // by path
		files   map[key]*File      // open and unchanged, as far as was seen
		idle    list.List          // unused ones of files, longest unused first
		sweep   *time.Timer        // nil before the first
		armed   bool               // the sweep will run: there are idle files
	}
}

// New returns a client. It does no I/O.
func New(c Config) *Client {
	k := &Client{config: c.withDefaults()}
	k.mu.sockets, k.mu.files = make(map[string]*socket), make(map[key]*File)
	return k
}

var errClosed = errors.New("the client is closed")

// Open returns the block's files, which the caller gives back with Release. Its
// error says why they cannot be had; the datanode may send the block all the
// same.
func (c *Client) Open(ctx context.Context, b Block) (*File, error) {
	if f := c.kept(b.key()); f != nil {
		if err := f.unchanged(); err == nil && f.size >= b.Size {
			return f, nil
		}
		c.forget(f)
		f.Release()
	}
	s, err := c.socket(b.Addr)
	if err != nil {
		return nil, err
	}
	f, err := s.request(ctx, c.config.Timeout, b)
	c.learn(ctx, s, err)
	if err != nil {
		return nil, err
	}
	f.client, f.key = c, b.key()
	c.opened.Add(1)
	return c.keep(f), nil
}

// kept returns the open files of a block, if there are any, for one more use.
func (c *Client) kept(k key) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.mu.files[k]
	if f != nil {
		c.use(f)
	}
	return f
}

// use counts one more use. mu is held.
func (c *Client) use(f *File) {
	if f.uses == 0 {
		c.mu.idle.Remove(f.idle)
	}
	f.uses++
}

// keep lets other readers find a file that was just passed, with its first use.
// If two asked at the same time, the first file is the one for all.
func (c *Client) keep(f *File) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.uses = 1
	switch first := c.mu.files[f.key]; {
	case c.mu.closed:
		f.forgotten = true
	case first == nil:
		c.mu.files[f.key] = f
	default:
		c.use(first)
		f.forgotten = true
		c.release(f)
		return first
	}
	return f
}

// forget keeps a file from further readers; it is closed after its last use.
func (c *Client) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(f)
}

// drop forgets a file. mu is held.
func (c *Client) drop(f *File) {
	if f.forgotten {
		return
	}
	f.forgotten = true
	delete(c.mu.files, f.key)
	if f.uses == 0 {
		c.mu.idle.Remove(f.idle)
		f.close()
		c.opened.Add(-1)
	}
}

// release ends a use. mu is held.
func (c *Client) release(f *File) {
	if f.uses--; f.uses > 0 {
		return
	}
	if f.forgotten {
		f.close()
		c.opened.Add(-1)
		return
	}
	f.since = time.Now()
	f.idle = c.mu.idle.PushBack(f)
	if c.mu.idle.Len() > c.config.Keep {
		c.drop(c.mu.idle.Front().Value.(*File))
	}
	c.arm()
}

// Idle files are checked every sweepEvery, so that the disk space of a deleted block
// is free soon after, and closed after idleFor without a use.
const (
	sweepEvery = 2 * time.Second
	idleFor    = 5 * time.Minute
)

// arm has the sweep run while there are idle files, however often files are released
// meanwhile. mu is held.
func (c *Client) arm() {
	if c.mu.closed || c.mu.armed || c.mu.idle.Len() == 0 {
		return
	}
	c.mu.armed = true
	c.mu.sweep = time.AfterFunc(sweepEvery, c.sweep)
}

// sweep forgets idle files that have changed, or were idle for long, and all of
// a datanode that has begun anew.
func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.armed = false
	for e := c.mu.idle.Front(); e != nil; {
		f := e.Value.(*File)
		e = e.Next()
		if time.Since(f.since) > idleFor || f.unchanged() != nil || f.home.moved() {
			c.drop(f)
		}
	}
	c.arm()
}

// Close forgets all files. Those in use are closed after their last use.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.sweep != nil {
		c.mu.sweep.Stop()
	}
	for _, f := range c.mu.files {
		c.drop(f)
	}
}

// Stats counts the open blocks of a client, and tells the state of its sockets.
type Stats struct {
	Files int    `json:"files"`           // blocks whose files are open
	Cause string `json:"cause,omitempty"` // why blocks of this host's datanodes come over TCP; empty if they do not
}

// Snapshot returns the statistics. If sockets of several datanodes fail, Cause is that
// of one of them.
func (c *Client) Snapshot() Stats {
	s := Stats{Files: int(c.opened.Load())}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.mu.sockets {
		if k.cause != nil {
			s.Cause = k.cause.Error()
		}
	}
	return s
}

// socket returns that of a datanode, if it is not at rest.
func (c *Client) socket(addr string) (*socket, error) {
	path := c.config.Path
	if strings.Contains(path, portMark) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		path = strings.ReplaceAll(path, portMark, port)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, errClosed
	}
	s := c.mu.sockets[path]
	if s == nil {
		s = &socket{path: path}
		c.mu.sockets[path] = s
	}
	if s.cause != nil && time.Since(s.tried) < c.config.Rest {
		return nil, s.cause
	}
	return s, nil
}

// portMark stands for a datanode's port in the path of its socket.
const portMark = "_PORT"

// learn remembers whether a socket is of use, and says it when that changes.
func (c *Client) learn(ctx context.Context, s *socket, err error) {
	var useless *uselessError
	if ctx.Err() != nil || err != nil && !errors.As(err, &useless) {
		return // says nothing of the socket
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := s.cause
	s.cause, s.tried = nil, time.Now()
	if useless != nil {
		s.cause = useless
	}
	switch {
	case s.cause == nil && before != nil:
		c.config.Log.Info("blocks of this host are read by their files again", "socket", s.path)
	case s.cause != nil && (before == nil || before.Error() != s.cause.Error()):
		c.config.Log.Warn("blocks of this host are read over TCP", "socket", s.path, "cause", s.cause, "again in", c.config.Rest)
	}
}

// A uselessError is of the socket or its datanode, not of one block.
type uselessError struct{ cause error }

func (e *uselessError) Error() string { return e.cause.Error() }
func (e *uselessError) Unwrap() error { return e.cause }

func useless(format string, args ...any) error { return &uselessError{fmt.Errorf(format, args...)} }
