package group

import (
	"context"
	"sync"
)

// A leadership is the time from one change of the leader, as this node sees it, to
// the next. A leader that is lost may keep its connections and never answer; so
// what it was asked is given up when its leadership ends. The lock guards both fields, which
// are made anew together.
type leadership struct {
	mu struct {
		sync.Mutex
		ctx context.Context // done when it ends
		end context.CancelFunc
	}
}

func (r *leadership) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.end != nil {
		r.mu.end()
	}
	r.mu.ctx, r.mu.end = context.WithCancel(context.Background())
}

func (r *leadership) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.end()
}

func (r *leadership) now() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.ctx
}
