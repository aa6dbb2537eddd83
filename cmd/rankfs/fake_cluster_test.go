package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/meta"
)

// Cluster is what the address that the fake daemon listens on says: without
// one it is alone, at lost:7420 it has no leader, at out:7420 it was removed, at
// follower:7420 it does not lead, and elsewhere it does.
func (n *fakeNode) Cluster() control.Cluster {
	node := func(i int, state string) control.Member {
		return control.Member{
			ID: strings.Repeat(fmt.Sprint(i), 16), Host: fmt.Sprintf("node%d", i), Addr: fmt.Sprintf("node%d:7420", i),
			State: state, Voter: i <= 3, Role: map[bool]string{true: "operator", false: "member"}[i == 1], Entered: epoch.Add(time.Duration(i) * time.Hour),
		}
	}
	c := control.Cluster{ID: "c0ffee", Self: strings.Repeat("1", 16), Leader: strings.Repeat("1", 16), Term: 7, Applied: 1234, Plans: 1500}
	switch n.config.Listen {
	case "":
		alone := node(1, "up")
		alone.Addr = "127.0.0.1:41873"
		c.Nodes = []control.Member{alone}
		return c
	case "lost:7420":
		c.Leader = ""
		c.Nodes = []control.Member{node(1, "up"), node(2, "down"), node(3, "down")}
		return c
	case "out:7420":
		c.Self, c.Leader, c.Removed = strings.Repeat("4", 16), "", true
		c.Nodes = []control.Member{node(4, "removed"), node(2, "up"), node(3, "up")}
		return c
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, state := range []string{"up", "up", "down", "up", "draining"} {
		m := node(i+1, state)
		if drained, ok := n.mu.drained[m.Host]; ok && state != "down" {
			m.State = map[bool]string{true: "draining", false: "up"}[drained]
		}
		if n.mu.removed[m.Host] {
			continue
		}
		m.Leaving = n.leaving(m)
		if lag := uint64(i * 1000); i > 0 && n.config.Listen != "follower:7420" {
			m.Lag = &lag
		}
		c.Nodes = append(c.Nodes, m)
	}
	if n.config.Listen == "follower:7420" {
		c.Leader = strings.Repeat("2", 16)
	}
	return c
}

// leaving has what node4 has of the pool go as it is looked at, and node1 nowhere to put it.
func (n *fakeNode) leaving(m control.Member) *control.Leaving {
	switch {
	case m.State != "draining":
		return nil
	case m.Host == "node1":
		return &control.Leaving{Maps: 1, Bytes: 1 << 20, Stuck: "no other node has a pool: mount one with --pool-ram"}
	case m.Host == "node4" && n.mu.leaving > 0:
		n.mu.leaving--
		return &control.Leaving{Maps: n.mu.leaving + 1, Bytes: int64(n.mu.leaving+1) << 30}
	}
	return nil
}

// fakePeers has node2 do well, and node3 not.
func fakePeers() *control.Peers {
	return &control.Peers{
		Received: control.Traffic{Bytes: 3 << 30, Records: 300_000, Requests: 1200, Refused: 3, Failed: 12},
		Sent:     control.Traffic{Bytes: 2 << 30, Records: 200_000, Requests: 800, Failed: 1},
		Corrupt:  1, Hedges: 14, HedgesWon: 9, Turned: 2,
		Nodes: []control.Peer{
			{
				ID: strings.Repeat("2", 16), Host: "node2",
				Received: control.Traffic{Bytes: 3<<30 - 5<<20, Records: 299_488, Requests: 1180, Refused: 3},
				Sent:     control.Traffic{Bytes: 2 << 30, Records: 200_000, Requests: 800, Failed: 1},
			},
			{
				ID: strings.Repeat("3", 16), Host: "node3",
				Received: control.Traffic{Bytes: 5 << 20, Records: 512, Requests: 20, Failed: 12}, BackOff: 37.4,
			},
		},
	}
}

// fakeLeases are of node2, whose readers have batches, and of node1, which claims ranks.
func fakeLeases() []control.Leases {
	since := epoch.Add(2*time.Hour + 9*time.Minute)
	return []control.Leases{
		{ID: strings.Repeat("2", 16), Host: "node2", Ranks: 4, Batches: 3, Since: &since},
		{ID: strings.Repeat("1", 16), Host: "node1", Ranks: 1200},
	}
}

// All has node3 down, a disk of node2 suspended, node4 of a release that says nothing and node5 of
// one that does not say how many plans it knows.
func (n *fakeNode) All(context.Context) (all []control.NodeStatus) {
	for _, m := range n.Cluster().Nodes {
		s := control.NodeStatus{Member: m}
		switch m.Host {
		case "node3":
			s.Error = "it does not answer"
		case "node4":
			s.Error = "it is of a release that does not say"
		default:
			plans, term := 1500, uint64(7)
			s.NodeSummary = &control.NodeSummary{Version: "v0.1", Readers: 8, Plans: &plans, Term: &term, Tiers: []control.Tier{
				{Name: "ram", Used: 3 << 28, Budget: 2 << 30}, {Name: "nvme", Used: 1 << 40, Budget: 2 << 40}, {Name: "nvme", Budget: 1 << 40}}}
		}
		if m.Host == "node5" {
			s.Plans, s.Term = nil, nil
		}
		if m.Host == "node2" {
			s.Faults = []control.Fault{fault("tier", "x"), fault("disk", "y"), fault("disk", "z")}
		}
		all = append(all, s)
	}
	return all
}

// led is the error of what needs a leader.
func (n *fakeNode) led() error {
	if n.Cluster().Leader == "" {
		return fmt.Errorf("cluster %w: it has no leader; a majority of the voters must be up; see: rankfs node ls", meta.ErrUnavailable)
	}
	return nil
}

func (n *fakeNode) member(name string) (control.Member, error) {
	for _, m := range n.Cluster().Nodes {
		if m.ID == name || m.Host == name {
			return m, n.led()
		}
	}
	return control.Member{}, fmt.Errorf("node %q %w; see: rankfs node ls", name, meta.ErrNotExist)
}

func (n *fakeNode) CreateToken(_ context.Context, r control.TokenRequest) (control.Token, error) {
	return control.Token{
		Token: "rankfs-token", ID: "0123456789ab", Role: cmp.Or(r.Role, "member"), Expires: epoch.Add(2*time.Hour + 13*time.Minute + r.Life), Uses: r.Uses,
		Join: n.Cluster().Nodes[0].Addr,
	}, n.led()
}

// Tokens are two, and none at all without other nodes.
func (n *fakeNode) Tokens() []control.TokenInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.dropped || n.config.Listen == "" {
		return []control.TokenInfo{}
	}
	return []control.TokenInfo{
		{ID: "0123456789ab", Role: "member", Uses: 3, Used: 1, Host: "node1", Expires: epoch.Add(3 * time.Hour)},
		{ID: "ba9876543210", Role: "operator", Uses: 1, Host: "node2", Expires: epoch.Add(30 * time.Hour)},
	}
}

// DropToken drops the first token, and may not drop the second. Tokens has neither afterwards: no
// script looks for the second then.
func (n *fakeNode) DropToken(_ context.Context, id string) error {
	switch id {
	case "0123456789ab":
		n.mu.Lock()
		n.mu.dropped = true
		n.mu.Unlock()
		return n.led()
	case "ba9876543210":
		return meta.Worded(meta.ErrDenied, "node 1111111111111111 is not allowed to do this, which is for operators: it is a member of the cluster; do it on an operator, as node2 (2222222222222222); see: rankfs node ls")
	}
	return fmt.Errorf("token %q %w, or is used up, or has expired; see: rankfs token ls", id, meta.ErrNotExist)
}

func (n *fakeNode) DrainNode(_ context.Context, r control.DrainRequest) error {
	m, err := n.member(r.Node)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.drained[m.Host] = r.Drain
	}
	return err
}

// PromoteNode is an operator's at once for node2, and takes another voter for others.
func (n *fakeNode) PromoteNode(_ context.Context, name string) (control.Promotion, error) {
	m, err := n.member(name)
	p := control.Promotion{ID: m.ID, Host: m.Host, Role: "operator"}
	if m.Host != "node2" {
		p = control.Promotion{ID: m.ID, Host: m.Host, Role: "member", Said: []string{"node1"}, Silent: []string{"node2", "node3"}, Needed: 2}
	}
	return p, err
}

func (n *fakeNode) RemoveNode(_ context.Context, name string) error {
	m, err := n.member(name)
	if err == nil && m.Host == "node1" {
		err = meta.Worded(meta.ErrDenied, "node %s is not allowed to remove itself: do it on another operator, as node2 (2222222222222222)", m.ID)
	}
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.removed[m.Host] = true
	}
	return err
}

// Plan is that of eight ranks, the fifth to eighth of which are on node2.
func (n *fakeNode) Plan(_ context.Context, r control.PlanRequest) (control.Survey, error) {
	name, options, _ := meta.SplitView(r.View)
	if _, err := n.find(name); err != nil {
		return control.Survey{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Settle && n.mu.settled {
		return control.Survey{}, fmt.Errorf("settle plan of %s: one for other nodes %w", r.View, meta.ErrExist)
	}
	p := control.Survey{
		ViewName: viewNamed(r.View), State: control.PlanOpen, Ranks: 8, Steps: 1_000_000, Looked: 4096, Located: true,
		Nodes: []control.Reads{
			{Host: "node1", Ranks: 4, Bytes: 10 << 30, Local: 10<<30 - 1<<20, Strict: 5 << 30},
			{Host: "node2", Ranks: 4, Bytes: 10 << 30, Local: 9 << 30, Strict: 4 << 30},
		},
		LocalBlocks: "short-circuit",
		Racks:       2, Serving: &control.Serving{Hosts: 3, Busiest: "data7", Share: 0.41666},
		Plan:   control.Share{Local: 0.949951, Balance: 1, Bytes: control.Bytes{Local: 19<<30 - 1<<20, Near: 1 << 30, Remote: 1 << 20}},
		Strict: control.Share{Local: 0.45, Balance: 1.0345, Bytes: control.Bytes{Local: 9 << 30, Near: 4 << 30, Remote: 7 << 30}},
	}
	for i, s := range r.Seats {
		p.Nodes[i%2].Host, p.Nodes[i%2].Ranks = s.Host, s.Ranks
	}
	switch options {
	case "assign=strict":
		p.State, p.Reason = control.PlanFixed, "with assign=strict each rank has its share of every step, wherever it is"
		p.Looked, p.Steps, p.Racks, p.Serving = 7, 7, 0, nil
	case "epoch=1":
		p.State, p.Reason, p.Located = control.PlanFixed, "all of the source lies on node1", false
		p.Racks, p.Serving, p.LocalBlocks = 0, nil, ""
	}
	switch at := epoch.Add(time.Hour); {
	case p.State == control.PlanFixed:
	case r.Settle:
		n.mu.settled = true
		p.State, p.Settled = control.PlanSettled, &at
	case r.Unsettle:
		n.mu.settled = false
	case n.mu.settled:
		p.Settled = &at
		if r.Seats == nil {
			p.State = control.PlanSettled
		}
	}
	if w := r.Weights; w != nil {
		p.Program = &control.Program{
			Chunks: 1000, Best: control.Point{Local: 990, Most: 130}, Points: 3,
			Curve: []control.Point{{Local: 900, Most: 125}, {Local: 990, Most: 130}, {Local: 1000, Most: 200}},
		}
		if w.Local == 0 {
			p.Program.Best = p.Program.Curve[0]
		}
	}
	return p, nil
}
