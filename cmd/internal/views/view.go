package views

import (
	"context"
	"sync/atomic"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A View is one directory below /datasets. It implements what an fs.View is made of.
//
// What a rank reads depends on where all ranks are, and that shows when they open their
// first batches. So a view is unsettled at first: it shows what would be if it were settled
// now. The first open of a rank claims it for this node; when all ranks are claimed, or
// no more come for a while, the cluster settles where they are. From then on the view is
// settled, and the same on all nodes for ever. One for which that makes no difference is
// settled from the beginning.
//
// All fields but the assignment and sequence are set by newView; sequence is written
// before the settled assignment is stored, and read after that was loaded.
type View struct {
	name    string // under which it was looked up
	key     string // the full name
	job     string // under which its waits are accounted for
	asked   meta.View
	dataset *catalog.Dataset

	assigned atomic.Pointer[assignment]
	settler  chan struct{} // has a token while an open settles the view; others wait for room
	sequence uint64        // of the settled plan that the view goes by; zero if there is none
	ranks    viewRanks

	// Of the node, for all its views.
	state   *state.Machine
	settled *settledPlans
	maker   *maker
	cache   *cache.Cache
	stalls  *stall.Table
	memory  *Memory
	queues  *queues
}

// assign makes the view what follows from where the ranks are.
func (v *View) assign(seats []plan.Seat, settled bool) error {
	a, err := v.maker.assign(v.asked, v.dataset.Version, seats, settled)
	if err != nil {
		return err
	}
	v.assigned.Store(a)
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

// Called is the shortest name of the view, and the one with all options.
func (v *View) Called() (short, full string) { return v.asked.Short(v.dataset.Default), v.key }

// Batches are the batches of the view, as of now.
func (v *View) Batches() *Batches { return v.now().Batches }

// RanksHere are the ranks of this node, as the view is settled or as it would be.
func (v *View) RanksHere() (ranks []uint64) {
	a := v.now()
	seats := a.seats
	if seats == nil {
		seats = v.ranks.Seats(v.ranks.WouldBe(v.asked))
	}
	first := uint64(0)
	for _, seat := range seats {
		for rank := first; rank < first+seat.Ranks && meta.SameHost(seat.Host, a.host); rank++ {
			ranks = append(ranks, rank)
		}
		first += seat.Ranks
	}
	return ranks
}

// Settled reports whether the view never changes any more.
func (v *View) Settled() bool { return v.now().settled }

// Records implements fs.RecordTables.
func (v *View) Records(rank, step uint64) uint64 { return v.now().Records(rank, step) }

// Size implements fs.Batches.
func (v *View) Size(ctx context.Context, rank, step uint64) (int64, error) {
	return v.now().SizeFor(ctx, rank, step)
}
