package wire

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"rankfs/meta"
)

type clientCounters struct {
	requests, in, out, items, dials                  atomic.Uint64
	unavailable, corruptErrors, busy, other, stopped atomic.Uint64
	corrupt                                          atomic.Uint64
	under, waiting, conns                            atomic.Int64
}

// failed counts an error by its kind.
func (c *clientCounters) failed(err error, stopped bool) {
	switch {
	case stopped:
		c.stopped.Add(1)
	case errors.Is(err, meta.ErrUnavailable):
		c.unavailable.Add(1)
	case errors.Is(err, meta.ErrCorrupt):
		c.corruptErrors.Add(1)
	case errors.Is(err, meta.ErrBusy):
		c.busy.Add(1)
	default:
		c.other.Add(1)
	}
}

// ClientStats is a snapshot of a Client. UnderWay, Waiting and Conns are
// gauges, and zero after Close; the others are totals.
type ClientStats struct {
	Requests, BytesIn, BytesOut, Dials uint64
	Items                              uint64 // of the runs of requests that were answered whole

	// How requests failed. Stopped are those that their caller cancelled, or that lost a
	// race.
	Unavailable, Corrupt, Busy, Other, Stopped uint64

	CorruptStreams uint64 // given up because a checksum was wrong

	UnderWay, Waiting, Conns int64
}

// Stats returns what the client did and has.
func (c *Client) Stats() ClientStats {
	n := &c.count
	return ClientStats{
		Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(), Items: n.items.Load(), Dials: n.dials.Load(),
		Unavailable: n.unavailable.Load(), Corrupt: n.corruptErrors.Load(), Busy: n.busy.Load(),
		Other: n.other.Load(), Stopped: n.stopped.Load(),
		CorruptStreams: n.corrupt.Load(), UnderWay: n.under.Load(), Waiting: n.waiting.Load(), Conns: n.conns.Load(),
	}
}

// peerCounters count for one node.
type peerCounters struct {
	requests, in, out, items, busy, failed atomic.Uint64
}

// ended counts an error. That the caller gave up, or could not go on, is not the node's.
func (c *peerCounters) ended(err error, stopped bool) {
	switch {
	case stopped, isOwn(err):
	case errors.Is(err, meta.ErrBusy):
		c.busy.Add(1)
	default:
		c.failed.Add(1)
	}
}

// NodeStats has the counts and times of a Client for one node.
type NodeStats struct {
	Node string

	Requests, BytesIn, BytesOut, Items uint64 // as in ClientStats
	Busy                               uint64 // requests that it was too busy for
	Failed                             uint64 // and that failed otherwise

	Failures int           // in a row
	BackOff  time.Duration // how much longer it is not asked
}

// Nodes returns the nodes that were asked, by name.
func (c *Client) Nodes() []NodeStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []NodeStats
	for _, p := range c.mu.peers {
		all = append(all, p.stats())
	}
	slices.SortFunc(all, func(a, b NodeStats) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

func (p *peer) stats() NodeStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := &p.count
	return NodeStats{
		Node: p.node, Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(), Items: n.items.Load(),
		Busy: n.busy.Load(), Failed: n.failed.Load(),
		Failures: p.mu.health.failed, BackOff: max(0, time.Until(p.mu.health.until)),
	}
}

type serverCounters struct {
	requests, in, out, items    atomic.Uint64
	failed, busy, slow, refused atomic.Uint64
	conns, queued, under        atomic.Int64
}

// ServerStats is a snapshot of a Server. Conns, Queued and UnderWay are gauges,
// and zero after Serve; the others are totals.
type ServerStats struct {
	Requests, BytesIn, BytesOut uint64
	Items                       uint64 // of the runs of requests that were answered whole

	Failed  uint64 // requests that were answered with an error
	Busy    uint64 // requests refused for want of room
	Slow    uint64 // connections that ended because the peer did not read what was sent
	Refused uint64 // connections over a limit

	Conns, Queued, UnderWay int64
}

// Stats returns what the server did and has.
func (s *Server) Stats() ServerStats {
	n := &s.count
	return ServerStats{
		Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(), Items: n.items.Load(),
		Failed: n.failed.Load(), Busy: n.busy.Load(), Slow: n.slow.Load(), Refused: n.refused.Load(),
		Conns: n.conns.Load(), Queued: n.queued.Load(), UnderWay: n.under.Load(),
	}
}

// maxVisitors bounds the nodes that a server counts apart: those that were
// removed from the cluster are forgotten, and no cluster has so many others.
const maxVisitors = 4096

// visitorCounters count for one node.
type visitorCounters struct {
	requests, in, out, items, busy, failed atomic.Uint64
}

// VisitorStats counts the bytes that a node was given and gave, as in ServerStats.
type VisitorStats struct {
	Node                               string
	Requests, BytesIn, BytesOut, Items uint64
	Busy, Failed                       uint64
}

// visitor finds the counters of a node.
func (s *Server) visitor(node string) *visitorCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.visitors[node]
	if c == nil {
		c = new(visitorCounters)
		if len(s.mu.visitors) < maxVisitors {
			s.mu.visitors[node] = c
		}
	}
	return c
}

// Keep forgets what was counted of nodes that are not to be kept.
func (s *Server) Keep(keep func(node string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.mu.visitors, func(node string, _ *visitorCounters) bool { return !keep(node) })
}

// Visitors returns the nodes that asked, by name.
func (s *Server) Visitors() []VisitorStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []VisitorStats
	for node, n := range s.mu.visitors {
		all = append(all, VisitorStats{
			Node: node, Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(), Items: n.items.Load(),
			Busy: n.busy.Load(), Failed: n.failed.Load(),
		})
	}
	slices.SortFunc(all, func(a, b VisitorStats) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
