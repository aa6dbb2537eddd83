package wire

import (
	"context"
	"fmt"
	"sync"

	"rankfs/meta"
)

// A Server answers other nodes. The lock guards the table of visitors, whose counters are
// atomic.
type Server struct {
	handlers map[uint8]handler
	limits   Limits
	room     *room
	count    serverCounters

	scratch *sync.Pool // of senders

	mu struct {
		sync.Mutex
		visitors map[string]*counters
	}
}

// NewServer makes a server of the calls of several packages. No number may come twice.
// Limits that are zero get their defaults.
func NewServer(l Limits, pushes Pushes, calls ...Calls) (*Server, error) {
	s := &Server{handlers: make(map[uint8]handler), limits: l.withDefaults(), scratch: newScratch()}
	if s.limits.Runs < MaxRuns {
		return nil, fmt.Errorf("limit of %d runs %w: use %d or more, as one request may have", s.limits.Runs, meta.ErrInvalid, MaxRuns)
	}
	s.room = newRoom(&s.limits)
	s.mu.visitors = make(map[string]*counters)
	gate := newGate(s.limits.Requests, s.limits.PerPeer, &s.limits)
	for _, some := range calls {
		for number, call := range some {
			if s.handlers[number].do != nil {
				return nil, fmt.Errorf("call %d %w: two calls have that number", number, meta.ErrInvalid)
			}
			s.handlers[number] = handler{gate: gate, do: func(ctx context.Context, q Request, _ *Stream, a Answer) error {
				return call(ctx, q, a)
			}}
		}
	}
	gate = newGate(s.limits.Pushes, s.limits.PerPusher, &s.limits)
	for number, push := range pushes {
		if s.handlers[number].do != nil {
			return nil, fmt.Errorf("call %d %w: it is both asked for and pushed", number, meta.ErrInvalid)
		}
		s.handlers[number] = handler{gate: gate, do: push.do, pushed: true}
	}
	return s, nil
}

// visitor finds the counters of a node.
func (s *Server) visitor(node string) *counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.visitors[node]
	if c == nil {
		c = new(counters)
		if len(s.mu.visitors) < maxVisitors {
			s.mu.visitors[node] = c
		}
	}
	return c
}

// maxVisitors bounds the nodes that a server counts apart: those that were
// removed from the cluster are forgotten, and no cluster has so many others.
const maxVisitors = 4096
