package views

import (
	"context"
	"fmt"
	"sync/atomic"

	"rankfs/cache"
	"rankfs/cache/stall"
	"rankfs/cmd/internal/catalog"
	"rankfs/fs"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

// A View is one directory below /datasets. It implements fs.View.
//
// What a rank reads depends on where all ranks are, and that shows when they open their
// first batches. So a view is open at first: it shows what would be if it were settled
// now. The first open of a rank claims it for this node; when all ranks are claimed, or
// no more come for a while, the cluster pins where they are. From then on the view is
// settled, and the same on all nodes for ever. One for which that makes no difference is
// settled from the beginning.
//
// All fields but the assignment and sequence are set by newView; sequence is written
// before the settled assignment is stored, and read after that was loaded.
type View struct {
	views   *Views
	name    string // under which it was looked up
	key     string // the full name
	job     string // under which its waits are accounted for
	asked   meta.View
	dataset *catalog.Dataset

	assigned atomic.Pointer[assignment]
	settling chan struct{} // holds one token, of the open that settles the view
	sequence uint64        // of the pin that the view goes by; zero if there is none
	ranks    viewRanks
}

// An assignment is which rank reads what, and on which host. It never changes.
type assignment struct {
	*Batches
	host    string      // this one
	seats   []plan.Seat // of the ranks; nil: all are here
	settled bool
}

func (n *Views) newView(name string, v meta.View, d *catalog.Dataset) (*View, error) {
	key := v.String()
	s := &View{
		views: n, name: name, key: key, job: JobName(v, d.Default), asked: v, dataset: d, settling: make(chan struct{}, 1),
		ranks: viewRanks{views: n, view: v, key: key, generation: d.Generation},
	}
	if v.Assign == meta.AssignStrict || !d.Version.Source.Remote {
		// Nothing to choose from: all bytes are as near to one rank as to another.
		return s, s.assign(nil, true)
	}
	if p, ok := n.config.State.Plan(s.key); ok && p.Generation == d.Generation {
		return s, s.follow(p)
	}
	return s, s.assign(n.Seats(n.WouldBe(v)), false)
}

// assign makes s what follows from where the ranks are.
func (s *View) assign(seats []plan.Seat, settled bool) error {
	b, err := s.views.newBatches(s.asked, s.dataset.Version, seats)
	if err != nil {
		return err
	}
	if settled && b.Chunks != nil {
		b.Version.ReadBy(b.Plan)
	}
	s.views.watcher.Found(s.asked, b)
	s.assigned.Store(&assignment{b, s.views.config.Host, seats, settled})
	return nil
}

// now is the assignment as of now.
func (s *View) now() *assignment { return s.assigned.Load() }

// Key is the full name of the view.
func (s *View) Key() string { return s.key }

// Asked is what the name stands for.
func (s *View) Asked() meta.View { return s.asked }

// Of is the dataset that is viewed.
func (s *View) Of() *catalog.Dataset { return s.dataset }

// Short is the shortest name of the view.
func (s *View) Short() string { return Shortest(s.asked, s.dataset.Default) }

// Batches are those of the view, as of now.
func (s *View) Batches() *Batches { return s.now().Batches }

// Dataset implements fs.View.
func (s *View) Dataset() string { return s.asked.Dataset }

// Ranks implements fs.View.
func (s *View) Ranks() uint64 { return s.now().Cut().Ranks }

// Steps implements fs.View.
func (s *View) Steps() uint64 { return s.now().Steps() }

// Settled implements fs.View.
func (s *View) Settled() bool { return s.now().settled }

// Records implements fs.View.
func (s *View) Records(rank, step uint64) uint64 { return s.now().Records(rank, step) }

// Size implements fs.View.
func (s *View) Size(ctx context.Context, rank, step uint64) (int64, error) {
	return s.now().SizeFor(ctx, rank, step)
}

// Offsets implements fs.View.
func (s *View) Offsets(ctx context.Context, rank, step uint64) (fs.Offsets, error) {
	if err := s.settle(ctx, nil, rank); err != nil {
		return nil, err
	}
	return s.now().Offsets(ctx, rank, step)
}

// Open implements fs.View.
func (s *View) Open(ctx context.Context, rank, step uint64) (fs.Slab, error) {
	account := s.views.config.Stalls.Open(s.job, rank)
	account.Thread = fs.Thread(ctx)
	slab, err := s.open(ctx, &account, rank, step)
	if err != nil {
		account.Done(0, err)
		return nil, err
	}
	account.Done(slab.Size(), nil)
	return slab, nil
}

// open settles the view, and has the cache find the slab or make it.
func (s *View) open(ctx context.Context, account *stall.Open, rank, step uint64) (slab *cache.Slab, err error) {
	if err := s.settle(ctx, account, rank); err != nil {
		return nil, err
	}
	a := s.now()
	err = a.Version.Source.Retry(ctx, account, func() (err error) {
		slab, err = s.views.cache.Open(ctx, account, a.Batches, rank, step)
		return err
	})
	if err != nil {
		err = fmt.Errorf("dataset %s: %w", s.Dataset(), catalog.Reindex(err, s.Dataset()))
		return nil, s.withRoomFor(err)
	}
	return slab, nil
}
