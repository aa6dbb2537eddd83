package node

import (
	"context"
	"sync"
	"time"
)

// claims are what a settled view has still to say of its ranks: a rank that is
// opened here was perhaps planned elsewhere, and the plans of later epochs should
// know. Nobody waits for it.
type claims struct {
	mu struct {
		sync.Mutex
		said map[uint64]bool
	}
}

// later has the cluster told, once, that a rank of s is on this node.
func (c *claims) later(s *settling, rank uint64) {
	if !s.view.Load().Placed() {
		return
	}
	c.mu.Lock()
	known := c.mu.said[rank]
	if !known {
		if c.mu.said == nil {
			c.mu.said = make(map[uint64]bool)
		}
		c.mu.said[rank] = true
	}
	c.mu.Unlock()
	if known || s.node.member.claimant(s.asked, rank) == s.node.member.group.Self() {
		return
	}
	s.node.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(s.node.ctx, 10*time.Second)
		defer cancel()
		if err := s.node.member.claim(ctx, s.dataset, s.asked, rank); err != nil {
			s.node.config.Log.Debug("rank not claimed", "view", s.asked.String(), "rank", rank, "cause", err)
		}
	})
}
