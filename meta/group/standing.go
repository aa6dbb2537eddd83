package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"rankfs/meta"
	"rankfs/meta/trust"
)

var errNoLeader = fmt.Errorf("cluster %w: it has no leader; a majority of the voters must be up; see: rankfs node ls", meta.ErrUnavailable)

// A standing is the place of this node in its cluster, as it has learnt it: from its own copy
// of the state, and from the nodes that it has called.
//
// Any goroutine may note what it has learnt, and ask. Each channel is closed once, and
// nothing opens it again: a node that was removed stays so, and one that has begun has.
type standing struct {
	config    *Config
	begun     chan struct{}            // closed when the cluster knows that this node was started, and it what the cluster knew then
	behind    chan struct{}            // closed when this node has read what only a later release can
	removed   chan struct{}            // closed when it turns out that it was removed
	fallsOnce sync.Once                // of closing behind
	goesOnce  sync.Once                // of closing removed
	why       atomic.Pointer[error]    // of not having begun yet
	alien     atomic.Pointer[error]    // a certificate that is not of now, which was in the way last
	silent    atomic.Pointer[[]string] // nodes that did not answer when there was no leader
}

func newStanding(c *Config) *standing {
	return &standing{config: c, begun: make(chan struct{}), behind: make(chan struct{}), removed: make(chan struct{})}
}

// Begun waits until the cluster knows that this node was started, and this node
// what the cluster knew then. It is trust.ErrRemoved that the node was removed.
func (s *standing) Begun(ctx context.Context) error {
	select {
	case <-s.begun:
		return nil
	case <-s.removed:
		return trust.ErrRemoved
	case <-s.behind:
		return s.config.Machine.Err()
	case <-ctx.Done():
		if why := s.why.Load(); why != nil {
			return *why
		}
		return fmt.Errorf("%w: %w", errNoLeader, ctx.Err())
	}
}

// Removed reports whether this node has learnt that it was removed.
func (s *standing) Removed() bool {
	select {
	case <-s.removed:
		return true
	default:
		return s.config.Machine.Removed(s.config.Self.ID)
	}
}

// hasBegun is Begun, without waiting.
func (s *standing) hasBegun() bool {
	select {
	case <-s.begun:
		return true
	default:
		return false
	}
}

// notBegun notes why this node has not begun yet.
func (s *standing) notBegun(why error) { s.why.Store(&why) }

// fallBehind notes that this node cannot read what the cluster has agreed on.
func (s *standing) fallBehind() { s.fallsOnce.Do(func() { close(s.behind) }) }

// dialled notes what this node has learnt from one that it has dialled, or tried to.
func (s *standing) dialled(err error) {
	if errors.Is(err, trust.ErrRemoved) {
		s.goesOnce.Do(func() { close(s.removed) })
	}
	var u *trust.Untimely
	if errors.As(err, &u) {
		s.alien.Store(&err)
	} else if err == nil {
		s.alien.Store(nil)
	}
}
