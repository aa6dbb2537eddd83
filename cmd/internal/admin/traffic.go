package admin

import (
	"cmp"
	"slices"

	"rankfs/cmd/internal/control"
	"rankfs/meta/wire"
)

// peers counts what other nodes are asked for by this one, and ask it for.
type peers struct {
	client interface {
		Stats() wire.ClientStats
		Nodes() []wire.NodeStats
	}
	server interface { // set by Start
		Stats() wire.ServerStats
		Visitors() []wire.VisitorStats
	}
	hedged interface{ Hedges() (begun, won uint64) }
	hosts  hosts
}

// traffic counts the bytes that this node and its peers sent each other; nil if neither has asked
// for anything.
func (n *peers) traffic() *control.Peers {
	c, s := n.client.Stats(), n.server.Stats()
	hedges, won := n.hedged.Hedges()
	p := &control.Peers{
		Received: control.Traffic{
			Bytes: c.BytesIn, Records: c.Items, Requests: c.Requests,
			Refused: c.Busy, Failed: c.Unavailable + c.Corrupt + c.Other,
		},
		Sent:    traffic(s.BytesOut, s.Counts),
		Corrupt: c.CorruptStreams, Hedges: hedges, HedgesWon: won, Turned: s.Refused,
	}
	p.Nodes = n.pair(n.client.Nodes(), n.server.Visitors())
	if len(p.Nodes) == 0 && p.Received.Requests+p.Sent.Requests+p.Turned == 0 {
		return nil
	}
	return p
}

func traffic(bytes uint64, c wire.Counts) control.Traffic {
	return control.Traffic{Bytes: bytes, Records: c.Items, Requests: c.Requests, Refused: c.Busy, Failed: c.Failed}
}

// pair joins, for each node, the traffic received from it and sent to it.
func (n *peers) pair(asked []wire.NodeStats, asking []wire.VisitorStats) []control.Peer {
	of := make(map[string]*control.Peer)
	peer := func(node string) *control.Peer {
		if of[node] == nil {
			of[node] = &control.Peer{ID: node, Host: n.hosts.HostOf(node)}
		}
		return of[node]
	}
	for _, n := range asked {
		p := peer(n.Node)
		p.Received = traffic(n.BytesIn, n.Counts)
		p.BackOff = n.BackOff.Seconds()
	}
	for _, n := range asking {
		peer(n.Node).Sent = traffic(n.BytesOut, n.Counts)
	}
	nodes := make([]control.Peer, 0, len(of))
	for _, p := range of {
		nodes = append(nodes, *p)
	}
	slices.SortFunc(nodes, func(a, b control.Peer) int {
		return cmp.Or(cmp.Compare(b.Received.Bytes+b.Sent.Bytes, a.Received.Bytes+a.Sent.Bytes), cmp.Compare(a.ID, b.ID))
	})
	return nodes
}
