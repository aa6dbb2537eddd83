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
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"rankfs/meta"
)

// Config says how datanodes of this host are reached.
type Config struct {
	// Path is dfs.domain.socket.path: an absolute path, in which _PORT stands for
	// the port of the datanode's data transfer.
	Path string
	// Timeout bounds each exchange with a datanode. One that is well answers at
	// once; one that is stopped is asked again after Rest.
	Timeout time.Duration
	// Rest is how long a socket that failed is not tried again, or a block that was
	// refused, unless the datanode has made its socket anew. While this process has
	// no descriptor left it is a thirtieth.
	Rest time.Duration
	// Patience is how long a disk may take for what is not in memory: as long as a
	// datanode for its next bytes.
	Patience time.Duration
	// Age is how long the files of a block serve new readers before the datanode is asked
	// for them anew: it may not want them used any more, which it tells by nothing else
	// where it gives up the volume that they are on.
	Age time.Duration
	// Keep bounds the blocks whose files are kept open without a reader, each with
	// two descriptors. Hadoop's client keeps 256. Of twice as many that a disk does not
	// let go of none is asked for.
	Keep int
	Log  *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	c.Rest = cmp.Or(c.Rest, time.Minute)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Age = cmp.Or(c.Age, time.Minute)
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
	disks  *disks

	// mu guards the tables of sockets and files. A goroutine that holds it waits for no
	// datanode and no disk.
	mu struct {
		sync.Mutex
		closed  bool
		wanted  time.Time          // when a reader last wanted a block
		sockets map[string]*socket // by path
		refused map[key]lapse      // at most maxRefused blocks that a datanode does not pass, or whose files cannot be read
		files   map[key]*File      // open and unchanged, as far as was seen
		idle    list.List          // unused ones of files, longest unused first
		sweep   *time.Timer        // nil before the first
		armed   bool               // the sweep will run: there are idle files
	}
}

// New returns a client. It does no I/O.
func New(c Config) *Client {
	k := &Client{config: c.withDefaults()}
	k.disks = newDisks(k.config.Patience)
	k.mu.sockets, k.mu.refused, k.mu.files = make(map[string]*socket), make(map[key]lapse), make(map[key]*File)
	return k
}

var errClosed = errors.New("the client is closed")

// Open returns the block's files, which the caller gives back with Release. Its
// error says why they cannot be had; the datanode may send the block all the
// same.
func (c *Client) Open(ctx context.Context, b Block) (*File, error) {
	if f := c.kept(b.key()); f != nil {
		if c.good(f) && f.size >= b.Size {
			return f, nil
		}
		c.forget(f)
		f.Release()
	}
	if n, _ := c.disks.closing(); n >= 2*c.config.Keep {
		err := fmt.Errorf("a disk does not close the files of %d blocks: %w", n, syscall.ETIMEDOUT)
		c.refuse(b.key(), origin{}, err)
		return nil, err
	}
	s, err := c.socket(b)
	if err != nil {
		return nil, err
	}
	f, from, err := s.request(ctx, c.config.Timeout, b, c.disks)
	c.learn(ctx, s, b.key(), from, err)
	if err != nil {
		return nil, err
	}
	f.client, f.key, f.origin = c, b.key(), from
	return c.keep(f), nil
}

// good reports whether files may serve one more reader.
func (c *Client) good(f *File) bool {
	return f.unchanged() == nil && !f.origin.moved() && time.Since(f.passed) < c.config.Age
}

// kept returns the open files of a block, if there are any, for one more use.
func (c *Client) kept(k key) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.wanted = time.Now()
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
	}
}

// release ends a use. mu is held.
func (c *Client) release(f *File) {
	if f.uses--; f.uses > 0 {
		return
	}
	if f.forgotten {
		f.close()
		return
	}
	f.idle = c.mu.idle.PushBack(f)
	if c.mu.idle.Len() > c.config.Keep {
		c.drop(c.mu.idle.Front().Value.(*File))
	}
	c.arm()
}

// Idle files are checked every sweepEvery, so that the disk space of a deleted block
// is free soon after.
const sweepEvery = 2 * time.Second

// arm has the sweep run while there are idle files, however often files are released
// meanwhile. mu is held.
func (c *Client) arm() {
	if c.mu.closed || c.mu.armed || c.mu.idle.Len() == 0 {
		return
	}
	c.mu.armed = true
	c.mu.sweep = time.AfterFunc(sweepEvery, c.sweep)
}

// sweep forgets idle files that are no longer good.
func (c *Client) sweep() {
	for _, f := range c.idle() {
		c.check(f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.armed = false
	c.arm()
}

// idle returns the idle files. They may be closed at any time.
func (c *Client) idle() (all []*File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.mu.idle.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*File))
	}
	return all
}

// check looks at a file, with a use of it: were it closed meanwhile, it would be by who
// looks, and a close may hang.
func (c *Client) check(f *File) {
	if !c.still(f) {
		return
	}
	defer f.Release()
	if !c.good(f) {
		c.forget(f)
	}
}

// still begins a use of a file, if it is not forgotten.
func (c *Client) still(f *File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.forgotten {
		c.use(f)
	}
	return !f.forgotten
}

// Close forgets all files, and waits until they are closed if their disks answer. Those in
// use, of a reader or the sweep, are closed after their last use.
func (c *Client) Close() {
	c.forgetAll()
	c.disks.settle()
}

func (c *Client) forgetAll() {
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

// Stats counts the open blocks of a client, and tells which come over TCP.
type Stats struct {
	Files   int    // blocks whose files are open
	Asked   bool   // some block was wanted
	Refused int    // blocks that come over TCP, where others do not
	Cause   string // why these do, or all blocks of this host's datanodes; empty if none does
}

// Snapshot returns the statistics. If sockets of several datanodes fail, or several
// blocks, Cause is that of one of them.
func (c *Client) Snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{Files: int(c.disks.open.Load()), Asked: len(c.mu.sockets) > 0}
	for _, k := range c.mu.sockets {
		if c.matters(k.lapse) {
			s.Cause = k.cause.Error()
		}
	}
	if s.Cause != "" {
		return s
	}
	for _, l := range c.mu.refused {
		if c.matters(l) {
			s.Refused++
			s.Cause = l.cause.Error()
		}
	}
	return s
}

// matters reports whether a failure is one of what readers want: where they have gone on
// and not come back to it since its rest ended, nobody can say how it is now. mu is held.
func (c *Client) matters(l lapse) bool {
	return l.cause != nil && !c.mu.wanted.After(l.until.Add(c.config.Rest))
}

// socket returns that of a block's datanode, if neither that nor the block is at rest.
func (c *Client) socket(b Block) (*socket, error) {
	path := c.config.Path
	if strings.Contains(path, portMark) {
		_, port, err := net.SplitHostPort(b.Addr)
		if err != nil {
			return nil, err
		}
		path = strings.ReplaceAll(path, portMark, port)
	}
	s, lapses := c.lapses(path, b.key())
	if s == nil {
		return nil, errClosed
	}
	for _, l := range lapses {
		if l.rests() {
			return nil, l.cause
		}
	}
	return s, nil
}

// lapses returns a socket, nil after Close, with what was last wrong with it and with a
// block.
func (c *Client) lapses(path string, k key) (*socket, [2]lapse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, [2]lapse{}
	}
	s := c.mu.sockets[path]
	if s == nil {
		s = &socket{path: path}
		c.mu.sockets[path] = s
	}
	return s, [2]lapse{s.lapse, c.mu.refused[k]}
}

// portMark stands for a datanode's port in the path of its socket.
const portMark = "_PORT"

// OfBlock reports whether an error of Open is of that block alone: its datanode passes
// others, as far as is known.
func OfBlock(err error) bool {
	var useless *uselessError
	return !errors.As(err, &useless) && !errors.Is(err, errToken) && !errors.Is(err, errClosed)
}

// learn remembers whether a socket is of use, and a block is refused, and says it when
// that changes.
func (c *Client) learn(ctx context.Context, s *socket, k key, from origin, err error) {
	if ctx.Err() != nil || errors.Is(err, errToken) {
		return // says nothing of either
	}
	var useless *uselessError
	if err != nil && !errors.As(err, &useless) {
		defer c.refuse(k, from, err) // but the socket is of use
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := s.cause
	s.lapse = lapse{}
	if useless != nil {
		s.lapse = c.lapse(from, useless)
	}
	switch {
	case s.cause == nil && before != nil:
		c.config.Log.Info("blocks of this host are read by their files again", "socket", s.path)
	case s.cause != nil && before == nil:
		c.config.Log.Warn("blocks of this host are read over TCP; status says so until they no longer are", "socket", s.path, "cause", s.cause)
	}
}

// refuse has a block come over TCP for a while. It says so of the first such block.
func (c *Client) refuse(k key, from origin, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune()
	if len(c.mu.refused) == 0 {
		c.config.Log.Warn("a block of this host is read over TCP; status counts such blocks from now on", "block", k.id, "socket", from.path, "cause", cause)
	}
	if len(c.mu.refused) < maxRefused {
		c.mu.refused[k] = c.lapse(from, cause)
	}
}

// maxRefused is some more than blocks that one disk has of those which a node reads
// within two minutes. Of others nothing is remembered: they are asked for each time.
const maxRefused = 4096

// accept ends what refuse began, now that bytes of the file have matched their checksums:
// that a datanode passes files says nothing of what is in them.
func (c *Client) accept(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.mu.refused[f.key]; !ok || f.forgotten {
		return
	}
	c.forgive(f.key)
}

// prune forgets refused blocks that no reader has asked for since their rest ended, for as
// long as files are kept. mu is held.
func (c *Client) prune() {
	for k, l := range c.mu.refused {
		if time.Since(l.until) > c.config.Age {
			c.forgive(k)
		}
	}
}

// forgive has a block be one like others again. It says so of the last. mu is held.
func (c *Client) forgive(k key) {
	delete(c.mu.refused, k)
	if len(c.mu.refused) == 0 {
		c.config.Log.Info("no block of this host is refused any more", "last", k.id)
	}
}

// A lapse is a failure to have files, of one block or by one socket; the zero value is
// none.
type lapse struct {
	cause error
	until time.Time // it is not tried again before, unless
	from  origin    // has moved: another datanode may do better
}

func (l lapse) rests() bool {
	return l.cause != nil && time.Now().Before(l.until) && !l.from.moved()
}

func (c *Client) lapse(from origin, cause error) lapse {
	rest := c.config.Rest
	if meta.OutOfFiles(cause) {
		rest /= 30
	}
	return lapse{cause, time.Now().Add(rest), from}
}

// A uselessError is of the socket or its datanode, not of one block.
type uselessError struct{ cause error }

func (e *uselessError) Error() string { return e.cause.Error() }
func (e *uselessError) Unwrap() error { return e.cause }

func useless(format string, args ...any) error { return &uselessError{fmt.Errorf(format, args...)} }
