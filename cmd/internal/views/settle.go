package views

import (
	"context"
	"fmt"

	"rankfs/cache/stall"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/state"
)

// settle sees to it that s is settled, for a rank that is about to read.
func (s *View) settle(ctx context.Context, account *stall.Open, rank uint64) error {
	if s.now().settled {
		if s.now().Placed() {
			s.ranks.claimLater(rank)
		}
		return s.holds()
	}
	defer account.End(account.For(stall.Plan))
	if err := s.settleFirst(ctx, rank); err != nil {
		return fmt.Errorf("plan of %v: %w", s.asked, err)
	}
	return nil
}

// settleFirst is settle for a view that is open. Each rank says where it is before it
// waits for the token: the open that has the token waits for all, those of this node
// too.
func (s *View) settleFirst(ctx context.Context, rank uint64) error {
	if _, pinned := s.views.config.State.Plan(s.key); !pinned {
		if err := s.ranks.claim(ctx, rank); err != nil {
			return err
		}
	}
	select {
	case s.settling <- struct{}{}:
		defer func() { <-s.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.now().settled {
		return nil
	}
	p, err := s.ranks.pin(ctx)
	if err != nil {
		return err
	}
	if p.Generation != s.dataset.Generation {
		return batch.ErrRemoved
	}
	return s.follow(p)
}

// follow settles s by what the cluster pinned.
func (s *View) follow(p state.Plan) error {
	s.sequence = p.Sequence
	s.views.settled.note(s.key, p.Sequence)
	return s.assign(s.views.Seats(p.Nodes), true)
}

// holds reports whether s is still what the cluster pinned. If it was unpinned, the name
// stands for something else.
func (s *View) holds() error {
	if s.sequence == 0 || !s.views.config.State.Overtaken(s.key, s.sequence) {
		return nil
	}
	s.views.config.Drop(s.asked.Dataset)
	return fmt.Errorf("view %s: %w: its plan was unpinned; open it by its path again", s.key, meta.ErrOvertaken)
}
