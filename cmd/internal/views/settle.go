package views

import (
	"context"
	"fmt"

	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/meta/state"
)

// settle sees to it that the view is settled, for a rank that is about to read.
func (v *View) settle(ctx context.Context, account *stall.Open, rank uint64) error {
	if v.now().settled {
		if v.now().Placed() {
			v.ranks.claimLater(rank)
		}
		return v.holds()
	}
	defer account.End(account.For(stall.Overhead))
	if err := v.settleFirst(ctx, rank); err != nil {
		return fmt.Errorf("plan of %v: %w", v.asked, err)
	}
	return nil
}

// settleFirst is settle for a view that is unsettled. Each rank says where it is before it
// waits to be the settler: the open that is the settler waits for all, those of this node
// too.
func (v *View) settleFirst(ctx context.Context, rank uint64) error {
	if _, settled := v.state.SettledPlan(v.key); !settled {
		if err := v.ranks.claim(ctx, rank); err != nil {
			return err
		}
	}
	select {
	case v.settler <- struct{}{}:
		defer func() { <-v.settler }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if v.now().settled {
		return nil
	}
	p, err := v.ranks.settle(ctx)
	if err != nil {
		return err
	}
	if p.Generation != v.dataset.Generation {
		return batch.ErrRemoved
	}
	return v.follow(p)
}

// follow settles the view by the plan that the cluster settled.
func (v *View) follow(p state.SettledPlan) error {
	v.sequence = p.Sequence
	v.settled.note(v.key, p.Sequence)
	return v.assign(v.ranks.Seats(p.Nodes), true)
}

// holds reports whether the view is still what the cluster settled. If it was unsettled, the name
// stands for something else.
func (v *View) holds() error {
	if v.sequence == 0 || !v.state.Overtaken(v.key, v.sequence) {
		return nil
	}
	v.settled.drop(v.asked.Dataset)
	return meta.Worded(meta.ErrOvertaken, "view %s: its plan was unsettled; open it by its path again", v.key)
}
