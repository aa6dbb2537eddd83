package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/fetch/batch"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A settling view is one of which it is not known yet who reads what. That
// depends on where its ranks are, and where they are shows when they open their
// first batches. So the first open of a rank claims it for this node; when all
// have, or no more come for a while, the cluster pins where they are, and from
// then on the view is the same on all nodes for ever. It implements fs.View.
type settling struct {
	node    *Node
	name    string // under which it was looked up
	job     string // under which its waits are accounted for
	asked   meta.View
	dataset *catalog.Dataset
	view    atomic.Pointer[view]
	settled atomic.Bool
	turn    chan struct{} // holds one token, of who settles it now
	claimed claims

	key      string // of the plan
	sequence uint64 // of its pinning, once it is settled by that
}

// The settle window: how long ranks that start together may differ, and how
// long the first of them waits at most for the last.
const (
	quiet   = 300 * time.Millisecond
	gathers = 3 * time.Second
)

// settling is the view v, settled if nothing about it can be otherwise.
func (n *Node) settling(name string, v meta.View, d *catalog.Dataset) (*settling, error) {
	s := &settling{node: n, name: name, job: jobName(v, d.Default), key: v.String(), asked: v, dataset: d, turn: make(chan struct{}, 1)}
	if v.Assign == meta.AssignStrict || !d.Version.Source.Remote {
		// Nothing to choose from: all bytes are as near to one rank as to another.
		return s, s.become(nil, true)
	}
	if p, ok := n.member.machine.Plan(s.key); ok && p.Generation == d.Generation {
		s.pinned(p)
		return s, s.become(n.member.seats(p.Nodes), true)
	}
	return s, s.become(n.member.seats(n.member.wouldBe(v)), false)
}

// become makes s the view that follows from where the ranks are.
func (s *settling) become(seats []plan.Seat, settled bool) error {
	p, err := s.node.batches(s.asked, s.dataset.Version, seats)
	if err != nil {
		return err
	}
	if settled && p.Chunks != nil {
		p.Version.ReadBy(p.Plan)
	}
	plans, _ := p.kept()
	s.node.stays.meet(s.key, plans)
	s.view.Store(&view{p, s.dataset, s.node.cache, s.node.member.host, seats})
	s.settled.Store(settled)
	return nil
}

// pinned notes the plan that s goes by.
func (s *settling) pinned(p state.Plan) {
	s.sequence = p.Sequence
	s.node.member.pins.note(s.key, p.Sequence)
}

// settle sees to it that s is settled, for a rank that is about to read.
func (s *settling) settle(ctx context.Context, account *stall.Open, rank uint64) error {
	if s.settled.Load() {
		s.claimed.later(s, rank)
		return s.holds()
	}
	defer account.End(account.For(stall.Plan))
	// Each rank says where it is before it waits for its turn: who has the turn
	// waits for all, those of this node too.
	if err := s.claim(ctx, rank); err != nil {
		return fmt.Errorf("plan of %v: %w", s.asked, err)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.settled.Load() {
		return nil
	}
	p, err := s.pin(ctx)
	if err != nil {
		return fmt.Errorf("plan of %v: %w", s.asked, err)
	}
	if p.Generation != s.dataset.Generation {
		return fmt.Errorf("plan of %v: %w", s.asked, batch.ErrRemoved)
	}
	s.pinned(p)
	return s.become(s.node.member.seats(p.Nodes), true)
}

// holds reports whether s is still the cluster's plan: somebody may have had it
// unpinned. Then its name stands for something else.
func (s *settling) holds() error {
	if s.sequence == 0 || !s.node.member.machine.Overtaken(s.key, s.sequence) {
		return nil
	}
	s.node.drop(s.asked.Dataset)
	return fmt.Errorf("view %s: %w: its plan was unpinned; open it by its path again", s.key, meta.ErrOvertaken)
}

// claim says that a rank is on this node, for a plan that is yet to be pinned.
func (s *settling) claim(ctx context.Context, rank uint64) error {
	m := s.node.member
	if _, ok := m.machine.Plan(s.key); ok {
		return nil
	}
	return m.claim(ctx, s.dataset, s.asked, rank)
}

// pin finds the plan of s, or has the cluster pin one.
func (s *settling) pin(ctx context.Context) (state.Plan, error) {
	m := s.node.member
	if p, ok := m.machine.Plan(s.key); ok {
		return p, nil
	}
	if err := m.gather(ctx, s.asked); err != nil {
		return state.Plan{}, err
	}
	r, err := m.group.Do(ctx, &state.Pin{View: s.key, Generation: s.dataset.Generation, Nodes: m.wouldBe(s.asked)})
	if err != nil {
		return state.Plan{}, err
	}
	m.log.Info("plan pinned", "view", s.key, "ranks", s.asked.Ranks, "nodes", len(r.Plan.Nodes))
	return *r.Plan, nil
}

// claim says that a rank is on this node, unless the cluster knows.
func (m *member) claim(ctx context.Context, d *catalog.Dataset, v meta.View, rank uint64) error {
	if m.claimant(v, rank) == m.group.Self() {
		return nil
	}
	_, err := m.group.Do(ctx, &state.Claim{
		Dataset: v.Dataset, Generation: d.Generation, Ranks: v.Ranks, Rank: rank, Node: m.group.Self(),
	})
	return err
}

// claimant is the node that a rank was opened on last; empty if on none.
func (m *member) claimant(v meta.View, rank uint64) string {
	for _, run := range m.machine.Claims(v.Dataset, v.Ranks) {
		if rank < run.Count {
			return run.Node
		}
		rank -= run.Count
	}
	return ""
}

// gather waits until all ranks are claimed by nodes that are up, or no more
// come, or the view is planned.
func (m *member) gather(ctx context.Context, v meta.View) error {
	deadline := time.After(gathers)
	before := ""
	calm := time.NewTimer(quiet)
	defer calm.Stop()
	for {
		changed := m.machine.Changed()
		claims := m.machine.Claims(v.Dataset, v.Ranks)
		if _, planned := m.machine.Plan(v.String()); planned || m.allSeated(claims) || len(m.machine.Nodes()) == 1 {
			return nil
		}
		if now := fmt.Sprint(claims); now != before {
			before = now
			calm.Reset(quiet)
		}
		select {
		case <-changed:
		case <-calm.C:
			return nil
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// allSeated reports whether each rank is claimed by a node that is up.
func (m *member) allSeated(claims state.Runs) bool {
	for _, run := range claims {
		if n, ok := m.machine.Node(run.Node); !ok || !n.Up {
			return false
		}
	}
	return len(claims) > 0
}

// wouldBe says where the ranks of a view would be, if it were pinned now: where
// they were opened last, and the others in blocks on the nodes that are up, as
// mpirun places them.
func (m *member) wouldBe(v meta.View) state.Runs {
	var up []string
	for _, n := range m.machine.Nodes() {
		if n.Up && !n.Drained {
			up = append(up, n.ID)
		}
	}
	if len(up) == 0 {
		up = []string{m.group.Self()}
	}
	nodes := m.machine.Claims(v.Dataset, v.Ranks).Nodes()
	if len(nodes) == 0 {
		nodes = make([]string, v.Ranks)
	}
	for rank, node := range nodes {
		if n, ok := m.machine.Node(node); !ok || !n.Up {
			nodes[rank] = up[uint64(rank)*uint64(len(up))/v.Ranks]
		}
	}
	return state.RunsOf(nodes)
}

// seats are the hosts of nodes.
func (m *member) seats(runs state.Runs) []plan.Seat {
	var seats []plan.Seat
	for _, run := range runs {
		seats = append(seats, plan.Seat{Host: m.machine.HostOf(run.Node), Ranks: run.Count})
	}
	return seats
}

// Dataset names the dataset that is viewed.
func (s *settling) Dataset() string { return s.asked.Dataset }

// Ranks is the number of rank directories.
func (s *settling) Ranks() uint64 { return s.view.Load().Ranks() }

// Steps is the number of batches of each rank.
func (s *settling) Steps() uint64 { return s.view.Load().Steps() }

// Settled reports whether the plan is pinned.
func (s *settling) Settled() bool { return s.settled.Load() }

// Records is the number of records in a batch.
func (s *settling) Records(rank, step uint64) uint64 { return s.view.Load().Records(rank, step) }

// Size is the number of bytes in a batch.
func (s *settling) Size(ctx context.Context, rank, step uint64) (int64, error) {
	return s.view.Load().SizeFor(ctx, rank, step)
}

// Offsets is the record table of a batch.
func (s *settling) Offsets(ctx context.Context, rank, step uint64) (fs.Offsets, error) {
	if err := s.settle(ctx, nil, rank); err != nil {
		return nil, err
	}
	return s.view.Load().Offsets(ctx, rank, step)
}

// Open returns the slab of a batch, complete.
func (s *settling) Open(ctx context.Context, rank, step uint64) (fs.Slab, error) {
	account := s.node.stalls.Open(s.job, rank)
	account.Thread = fs.Thread(ctx)
	slab, err := s.openFor(ctx, &account, rank, step)
	if err != nil {
		account.Done(0, err)
		return nil, err
	}
	account.Done(slab.Size(), nil)
	return slab, nil
}

func (s *settling) openFor(ctx context.Context, account *stall.Open, rank, step uint64) (*cache.Slab, error) {
	if err := s.settle(ctx, account, rank); err != nil {
		return nil, err
	}
	v := s.view.Load()
	slab, err := v.Open(ctx, account, rank, step)
	return slab, s.node.crowded(err, v)
}

// Describe is the content of dataset.json.
func (s *settling) Describe() []byte { return s.view.Load().Describe() }

// Locality is the table of where the bytes of each batch are.
func (s *settling) Locality() fs.Table { return s.view.Load().Locality() }

// Chunks is the table of the dataset's chunks.
func (s *settling) Chunks() fs.Table { return s.view.Load().Chunks() }

// Attributes are what ls -l cannot show of a batch.
func (s *settling) Attributes(rank, step uint64) []fs.Attribute {
	return s.view.Load().Attributes(rank, step)
}

// Totals are the extended attributes of the directory.
func (s *settling) Totals() []fs.Attribute { return s.view.Load().Totals() }
