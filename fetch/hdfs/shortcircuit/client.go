package shortcircuit

import (
	"cmp"
	"container/list"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Config says how datanodes of this host are reached.
type Config struct {
	// Path is dfs.domain.socket.path: an absolute path, in which _PORT stands for
	// the port of the datanode's data transfer.
	Path string
	// Timeout bounds each exchange with a datanode. One that is well answers at
	// once; one that is stopped is asked again after BackOff.
	Timeout time.Duration
	// BackOff is how long a socket that failed is not tried again, or a block that was
	// refused, unless the datanode has made its socket anew. While this process has
	// no descriptor left it is a thirtieth.
	BackOff time.Duration
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
	c.BackOff = cmp.Or(c.BackOff, time.Minute)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.Age = cmp.Or(c.Age, time.Minute)
	c.Keep = cmp.Or(c.Keep, 256)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Client asks datanodes for blocks' files and keeps them open for the next
// reader. Its methods may be called concurrently. The lock guards the tables of sockets
// and files; a goroutine that holds it waits for no datanode and no disk.
type Client struct {
	config Config
	disks  *disks

	mu struct {
		sync.Mutex
		closed  bool
		wanted  time.Time          // when a reader last wanted a block
		sockets map[string]*socket // by path
		refused map[key]suspension // at most maxRefused blocks that a datanode does not pass, or whose files cannot be read
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
	k.mu.sockets, k.mu.refused, k.mu.files = make(map[string]*socket), make(map[key]suspension), make(map[key]*File)
	return k
}

var errClosed = errors.New("the client is closed")

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
		if c.matters(k.suspension) {
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
// and not come back to it since its suspension ended, its state now is unknown. mu is held.
func (c *Client) matters(l suspension) bool {
	return l.cause != nil && !c.mu.wanted.After(l.until.Add(c.config.BackOff))
}
