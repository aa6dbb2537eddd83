package views

import (
	"context"
	"fmt"
	"time"

	"rankfs/cache/stall"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/state"
)

// How long ranks that start together may differ in time, and how long the first of them
// waits at most for the last.
const (
	quietTime  = 300 * time.Millisecond
	gatherTime = 3 * time.Second
)

// settle sees to it that s is settled, for a rank that is about to read.
func (s *View) settle(ctx context.Context, account *stall.Open, rank uint64) error {
	if s.now().settled {
		s.claimLater(rank)
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
		if err := s.claim(ctx, rank); err != nil {
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
	p, err := s.pin(ctx)
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

// pin finds what the cluster pinned for s, or has it pin where the ranks are.
func (s *View) pin(ctx context.Context) (state.Plan, error) {
	if p, ok := s.views.config.State.Plan(s.key); ok {
		return p, nil
	}
	if err := s.gather(ctx); err != nil {
		return state.Plan{}, err
	}
	r, err := s.views.config.Cluster.Do(ctx, &state.Pin{View: s.key, Generation: s.dataset.Generation, Nodes: s.views.WouldBe(s.asked)})
	if err != nil {
		return state.Plan{}, err
	}
	s.views.config.Log.Info("plan pinned", "view", s.key, "ranks", s.asked.Ranks, "nodes", len(r.Plan.Nodes))
	return *r.Plan, nil
}

// gather waits until all ranks are claimed by nodes that are up, or no more come, or the
// view is pinned.
func (s *View) gather(ctx context.Context) error {
	deadline := time.After(gatherTime)
	before := ""
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		changed := s.views.config.State.Changed()
		claims := s.views.config.State.Claims(s.asked.Dataset, s.asked.Ranks)
		if _, pinned := s.views.config.State.Plan(s.key); pinned || s.views.allUp(claims) || len(s.views.config.State.Nodes()) == 1 {
			return nil
		}
		if now := fmt.Sprint(claims); now != before {
			before = now
			quiet.Reset(quietTime)
		}
		select {
		case <-changed:
		case <-quiet.C:
			return nil
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
