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

func (vs *Views) newView(name string, v meta.View, d *catalog.Dataset) (*View, error) {
	key := v.String()
	s := &View{
		views: vs, name: name, key: key, job: JobName(v, d.Default), asked: v, dataset: d, settling: make(chan struct{}, 1),
		ranks: viewRanks{views: vs, view: v, key: key, generation: d.Generation},
	}
	if v.Assign == meta.AssignStrict || !d.Version.Source.Remote {
		// Nothing to choose from: all bytes are as near to one rank as to another.
		return s, s.assign(nil, true)
	}
	if p, ok := vs.config.State.Plan(s.key); ok && p.Generation == d.Generation {
		return s, s.follow(p)
	}
	return s, s.assign(vs.Seats(vs.WouldBe(v)), false)
}

// assign makes the view what follows from where the ranks are.
func (v *View) assign(seats []plan.Seat, settled bool) error {
	b, err := v.views.newBatches(v.asked, v.dataset.Version, seats)
	if err != nil {
		return err
	}
	if settled && b.Chunks != nil {
		b.Version.ReadBy(b.Plan)
	}
	v.views.watcher.Found(v.asked, b)
	v.assigned.Store(&assignment{b, v.views.config.Host, seats, settled})
	return nil
}

// now is the assignment as of now.
func (v *View) now() *assignment { return v.assigned.Load() }

// Key is the full name of the view.
func (v *View) Key() string { return v.key }

// Asked is the view that the name stands for.
func (v *View) Asked() meta.View { return v.asked }

// Of is the dataset that is viewed.
func (v *View) Of() *catalog.Dataset { return v.dataset }

// Short is the shortest name of the view.
func (v *View) Short() string { return Shortest(v.asked, v.dataset.Default) }

// Batches are the batches of the view, as of now.
func (v *View) Batches() *Batches { return v.now().Batches }

// Dataset implements fs.View.
func (v *View) Dataset() string { return v.asked.Dataset }

// Ranks implements fs.View.
func (v *View) Ranks() uint64 { return v.now().Cut().Ranks }

// Steps implements fs.View.
func (v *View) Steps() uint64 { return v.now().Steps() }

// Settled implements fs.View.
func (v *View) Settled() bool { return v.now().settled }

// Records implements fs.View.
func (v *View) Records(rank, step uint64) uint64 { return v.now().Records(rank, step) }

// Size implements fs.View.
func (v *View) Size(ctx context.Context, rank, step uint64) (int64, error) {
	return v.now().SizeFor(ctx, rank, step)
}

// Offsets implements fs.View.
func (v *View) Offsets(ctx context.Context, rank, step uint64) (fs.Offsets, error) {
	if err := v.settle(ctx, nil, rank); err != nil {
		return nil, err
	}
	return v.now().Offsets(ctx, rank, step)
}

// Open implements fs.View.
func (v *View) Open(ctx context.Context, rank, step uint64) (fs.Slab, error) {
	account := v.views.config.Stalls.Open(v.job, rank)
	account.Thread = fs.Thread(ctx)
	slab, err := v.open(ctx, &account, rank, step)
	if err != nil {
		account.Done(0, err)
		return nil, err
	}
	account.Done(slab.Size(), nil)
	return slab, nil
}

// open settles the view, and has the cache find the slab or make it.
func (v *View) open(ctx context.Context, account *stall.Open, rank, step uint64) (slab *cache.Slab, err error) {
	if err := v.settle(ctx, account, rank); err != nil {
		return nil, err
	}
	a := v.now()
	err = a.Version.Source.Retry(ctx, account, func() (err error) {
		slab, err = v.views.cache.Open(ctx, account, a.Batches, rank, step)
		return err
	})
	if err != nil {
		err = fmt.Errorf("dataset %s: %w", v.Dataset(), catalog.Reindex(err, v.Dataset()))
		return nil, v.withRoomFor(err)
	}
	return slab, nil
}
