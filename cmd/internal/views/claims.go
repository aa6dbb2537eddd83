package views

import (
	"context"
	"sync"
	"time"

	"rankfs/meta/state"
)

// claim says that a rank is on this node, unless the cluster knows.
func (s *View) claim(ctx context.Context, rank uint64) error {
	self := s.views.config.Cluster.Self()
	if s.claimant(rank) == self {
		return nil
	}
	_, err := s.views.config.Cluster.Do(ctx, &state.Claim{
		Dataset: s.asked.Dataset, Generation: s.dataset.Generation, Ranks: s.asked.Ranks, Rank: rank, Node: self,
	})
	return err
}

// claimant is the node that a rank was opened on last; empty if on none.
func (s *View) claimant(rank uint64) string {
	for _, run := range s.views.config.State.Claims(s.asked.Dataset, s.asked.Ranks) {
		if rank < run.Count {
			return run.Node
		}
		rank -= run.Count
	}
	return ""
}

// saidClaims are the ranks of a settled view of which claimLater has told the cluster,
// or found that it knew.
type saidClaims struct {
	mu struct {
		sync.Mutex
		ranks map[uint64]bool
	}
}

// first reports whether a rank is there for the first time.
func (c *saidClaims) first(rank uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.mu.ranks[rank]
	if c.mu.ranks == nil {
		c.mu.ranks = make(map[uint64]bool)
	}
	c.mu.ranks[rank] = true
	return !known
}

// claimLater has the cluster told, once, that a rank of a settled view is on this node:
// it may have been planned elsewhere, and the plans of later epochs should know. The
// open does not wait for it.
func (s *View) claimLater(rank uint64) {
	if !s.now().Placed() || !s.said.first(rank) || s.claimant(rank) == s.views.config.Cluster.Self() {
		return
	}
	s.views.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.views.ctx, 10*time.Second)
		defer cancel()
		if err := s.claim(ctx, rank); err != nil {
			s.views.config.Log.Debug("rank not claimed", "view", s.key, "rank", rank, "cause", err)
		}
	})
}
