package wire

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

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

// NodeStats has the counts and times of a Client for one node.
type NodeStats struct {
	Node string
	Counts
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
	return NodeStats{Node: p.node, Counts: p.count.read(), Failures: p.mu.health.failed, BackOff: max(0, time.Until(p.mu.health.until))}
}

// ServerStats is a snapshot of a Server. Conns, Queued and UnderWay are gauges,
// and zero after Serve; the others are totals.
type ServerStats struct {
	Counts
	Slow    uint64 // connections that ended because the peer did not read what was sent
	Refused uint64 // connections over a limit

	Conns, Queued, UnderWay int64
}

// Stats returns what the server did and has.
func (s *Server) Stats() ServerStats {
	n := &s.count
	return ServerStats{
		Counts: n.read(), Slow: n.slow.Load(), Refused: n.refused.Load(),
		Conns: n.conns.Load(), Queued: n.queued.Load(), UnderWay: n.under.Load(),
	}
}

// VisitorStats has the counts of a Server for one node.
type VisitorStats struct {
	Node string
	Counts
}

// Keep forgets what was counted of nodes that are not to be kept.
func (s *Server) Keep(keep func(node string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.mu.visitors, func(node string, _ *counters) bool { return !keep(node) })
}

// Visitors returns the nodes that asked, by name.
func (s *Server) Visitors() []VisitorStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []VisitorStats
	for node, n := range s.mu.visitors {
		all = append(all, VisitorStats{node, n.read()})
	}
	slices.SortFunc(all, func(a, b VisitorStats) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
