package group

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A transport is between Raft and the one by which it reaches other nodes. Raft sends the log to a follower that fails to
// answer less and less often, every ten seconds at last, and does not look up
// when it is back. So the transport keeps to itself that sending has failed until
// the follower may be there again: until it has answered a heartbeat, of which
// there are several a second, or has called. To Raft it has failed once, and is
// sent the log at once.
//
// The transport does not wait for a node that is not in Raft's configuration, nor at all
// when this node leads no more. The lock guards the table and each peer in it; Raft is
// asked for its configuration without it.
//
// Raft says to followers how far the log is agreed on with the entries that come next, or
// when none has come for a while. Until then a follower does not know what it has asked for
// itself. So that while is as short as Raft lets it be, and the transport, where it has just
// brought a follower all that there is, keeps Raft until there is more, or until what it has
// learned may not be so any more: a node begins anew, another leads, or may.
type transport struct {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
	stays   func(id raft.ServerID) bool // in Raft's configuration
	logEnds *logEnds
	ended   chan struct{}

	mu struct {
		sync.Mutex
		closed bool
		peers  map[raft.ServerID]*peer
	}
}

// A peer is another node, as a transport knows it: how often it was heard, when that was
// sent last by which it took this node for the leader, how far it has said in that term that it
// has the log, and what its connections hang on.
type peer struct {
	times uint64
	led   time.Time
	term  uint64
	last  uint64
	wake  chan struct{} // closed when it is heard again; nil if no goroutine waits
	line  context.Context
	cut   context.CancelFunc
}

// hear notes that a node was heard, or is waited for no more.
func (p *peer) hear() {
	p.times++
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

// silence bounds waiting for a follower, beside all else that ends it. Each time
// Raft counts a failure, and with the twelfth in a row it waits those ten seconds.
const silence = time.Hour

// How long a leader that has nothing to say to a follower is silent, beside its heartbeats.
const (
	untold = time.Millisecond // after it has written an entry, and has no other to write

	// With nothing that the follower does not know. At 20 a second that was most of what an
	// idle daemon did; Raft takes the answer for one that comes just now, so this is well below
	// the half second for which it believes that it leads when it hears no node.
	idle = 200 * time.Millisecond
)

// newTransport is one by way of a network transport.
func newTransport(t *raft.NetworkTransport, n *logEnds, stays func(raft.ServerID) bool) *transport {
	c := &transport{Transport: t, WithPreVote: t, WithClose: t, stays: stays, logEnds: n, ended: make(chan struct{})}
	c.mu.peers = make(map[raft.ServerID]*peer)
	return c
}

// peer is the entry of a node, made if there is none. The lock is held.
func (c *transport) peer(id raft.ServerID) *peer {
	p := c.mu.peers[id]
	if p == nil {
		p = new(peer)
		p.line, p.cut = context.WithCancel(context.Background())
		c.mu.peers[id] = p
		if c.mu.closed {
			p.cut()
		}
	}
	return p
}

// times is the number of times that a node was heard.
func (c *transport) times(id raft.ServerID) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer(id).times
}

// line is done when the connections to a node are to be cut.
func (c *transport) line(id raft.ServerID) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer(id).line
}

// heard ends waiting for a node that has answered, or called.
func (c *transport) heard(id raft.ServerID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer(id).hear()
}

// leads notes that a node took this one for the leader when it got what was sent then.
func (c *transport) leads(id raft.ServerID, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peer(id); sent.After(p.led) {
		p.led = sent
	}
}

// ledSince reports whether a node has done so with what was sent since then.
func (c *transport) ledSince(id raft.ServerID, then time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.peer(id).led.Before(then)
}

// stores notes that a node has the log as far as a request says.
func (c *transport) stores(id raft.ServerID, r *raft.AppendEntriesRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(id)
	p.term, p.last = r.Term, r.PrevLogEntry+uint64(len(r.Entries))
}

// has reports whether a node has said in a term that it has an entry of the log.
func (c *transport) has(id raft.ServerID, term, index uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(id)
	return p.term == term && p.last >= index
}

// called ends waiting for a node that says that it hears nothing, and connections
// on which nothing arrives.
func (c *transport) called(id raft.ServerID) {
	defer c.logEnds.again()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(id)
	p.cut()
	if !c.mu.closed {
		p.line, p.cut = context.WithCancel(context.Background())
	}
	p.hear()
}

// giveUp ends all waiting for answers of other nodes, and for more to bring to them.
func (c *transport) giveUp() {
	defer c.logEnds.again()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.mu.peers {
		p.hear()
	}
}

// end ends waiting and all connections, for good: Raft shuts down when what it has sent is
// answered, and a node that is silent answers nothing.
func (c *transport) end() {
	c.mu.Lock()
	c.mu.closed = true
	for _, p := range c.mu.peers {
		p.cut()
	}
	c.mu.Unlock()
	close(c.ended)
	c.giveUp()
}

// AppendEntries implements raft.Transport.
func (c *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse) error {
	times, begun := c.times(id), time.Now()
	err := c.Transport.AppendEntries(id, to, request, response)
	switch {
	case err == nil:
		c.heard(id)
		if response.Term <= request.Term {
			c.leads(id, begun)
		}
		if response.Success && !isHeartbeat(request) {
			c.stores(id, request)
		}
		switch {
		case response.Term > request.Term:
			c.logEnds.again() // Raft learns that another may lead from what is no heartbeat
		case response.Success && len(request.Entries) == 0 && !isHeartbeat(request):
			c.rest(request)
		}
	case !isHeartbeat(request):
		c.await(id, times)
	}
	return err
}

// rest returns when there is more to bring to a follower that has all that a request says.
func (c *transport) rest(r *raft.AppendEntriesRequest) {
	more := c.logEnds.after(r.PrevLogEntry, r.LeaderCommitIndex)
	if more == nil {
		return
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-more:
	case <-timer.C:
	case <-c.ended:
	}
}

// InstallSnapshot implements raft.Transport.
func (c *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, request *raft.InstallSnapshotRequest, response *raft.InstallSnapshotResponse, content io.Reader) error {
	times := c.times(id)
	err := c.Transport.InstallSnapshot(id, to, request, response, content)
	if err != nil {
		c.await(id, times)
	}
	return err
}

// isHeartbeat reports whether a request says nothing but that there is a leader.
func isHeartbeat(r *raft.AppendEntriesRequest) bool {
	return len(r.Entries) == 0 && r.PrevLogEntry == 0 && r.PrevLogTerm == 0 && r.LeaderCommitIndex == 0
}

// await returns when it makes sense to try again to reach a node that was heard
// so many times before it was tried in vain.
func (c *transport) await(id raft.ServerID, times uint64) {
	wake := c.wake(id, times)
	if wake == nil {
		return
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	}
}

// wake is closed when a node is heard again; nil if it was, or is not to be waited for.
func (c *transport) wake(id raft.ServerID, times uint64) <-chan struct{} {
	stays := c.stays(id) // taking a node out of the configuration closes wake, too
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(id)
	if c.mu.closed || p.times != times || !stays {
		return nil
	}
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	return p.wake
}

// hang has a connection to a node hang on its line.
func (c *transport) hang(ctx context.Context, id raft.ServerID, dial func(ctx context.Context) (net.Conn, error)) (net.Conn, error) {
	line := c.line(id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(line, cancel)()
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	return &hung{conn, context.AfterFunc(line, func() { conn.Close() })}, nil
}

// A hung connection is closed when the line that it hangs on is cut.
type hung struct {
	net.Conn
	leave func() bool
}

func (h *hung) Close() error {
	h.leave()
	return h.Conn.Close()
}
