package peers

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"rankfs/meta"
)

type clientCounters struct {
	requests, in, out, dials                         atomic.Uint64
	unavailable, corruptErrors, busy, other, stopped atomic.Uint64
	corrupt, hedges, won                             atomic.Uint64
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

	// How requests failed. Stopped are those whose caller gave up, or
	// that lost a race.
	Unavailable, Corrupt, Busy, Other, Stopped uint64

	CorruptStreams         uint64 // given up because a checksum was wrong
	HedgesBegun, HedgesWon uint64

	UnderWay, Waiting, Conns int64
}

// Stats returns what the client did and has.
func (c *Client) Stats() ClientStats {
	n := &c.count
	return ClientStats{
		Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(), Dials: n.dials.Load(),
		Unavailable: n.unavailable.Load(), Corrupt: n.corruptErrors.Load(), Busy: n.busy.Load(),
		Other: n.other.Load(), Stopped: n.stopped.Load(),
		CorruptStreams: n.corrupt.Load(), HedgesBegun: n.hedges.Load(), HedgesWon: n.won.Load(),
		UnderWay: n.under.Load(), Waiting: n.waiting.Load(), Conns: n.conns.Load(),
	}
}

// PeerStats is what is known of a node.
type PeerStats struct {
	Node     string
	Failures int           // in a row
	Rests    time.Duration // how much longer it is not asked
	// P95 is how long requests of up to 64 KiB, 1 MiB, 16 MiB, and more
	// mostly took; zero where too few are known.
	P95 [4]time.Duration
}

// Peers returns the nodes that were asked, by name.
func (c *Client) Peers() []PeerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []PeerStats
	for _, p := range c.mu.peers {
		all = append(all, p.stats())
	}
	slices.SortFunc(all, func(a, b PeerStats) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

func (p *peer) stats() PeerStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PeerStats{Node: p.node, Failures: p.mu.health.failed, Rests: max(0, time.Until(p.mu.health.until))}
	for i := range p.mu.times {
		s.P95[i], _ = p.mu.times[i].p95()
	}
	return s
}

type serverCounters struct {
	requests, in, out                   atomic.Uint64
	failed, busy, broken, slow, refused atomic.Uint64
	conns, queued, under                atomic.Int64
}

// ServerStats is a snapshot of a Server. Conns, Queued and UnderWay are gauges,
// and zero after Serve; the others are totals.
type ServerStats struct {
	Requests, BytesIn, BytesOut uint64

	Failed  uint64 // requests that were answered with an error
	Busy    uint64 // and those that there was no room for
	Broken  uint64 // connections that ended in an error of theirs
	Slow    uint64 // of these, where nobody took what was sent
	Refused uint64 // connections over a limit

	Conns, Queued, UnderWay int64
}

// Stats returns what the server did and has.
func (s *Server) Stats() ServerStats {
	n := &s.count
	return ServerStats{
		Requests: n.requests.Load(), BytesIn: n.in.Load(), BytesOut: n.out.Load(),
		Failed: n.failed.Load(), Busy: n.busy.Load(), Broken: n.broken.Load(), Slow: n.slow.Load(), Refused: n.refused.Load(),
		Conns: n.conns.Load(), Queued: n.queued.Load(), UnderWay: n.under.Load(),
	}
}
