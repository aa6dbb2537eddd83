package kept

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
)

// warmUps are the warm-ups that are going on. The lock guards the list, and is not held
// while the end of one is waited for.
type warmUps struct {
	mu struct {
		sync.Mutex
		all []*warmUp
	}
}

// A warmUp is one that is going on: what it is of, and how far it is.
type warmUp struct {
	view   *views.View
	name   string // that was asked for
	called control.ViewName
	share  share
	of     uint64
	next   atomic.Uint64 // to be begun
	done   atomic.Uint64
	stop   context.CancelCauseFunc
	ended  chan struct{}
}

// maxWarmUps at a time: each has its own workers, beside those of the cache.
const maxWarmUps = 4

// begin notes a warm-up, if none of its view is going on and there are not too
// many.
func (u *warmUps) begin(w *warmUp) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, other := range u.mu.all {
		if other.called == w.called {
			return fmt.Errorf("warm up %s: it %w: %d of %d %s are done", w.name, meta.ErrBusy, other.done.Load(), other.of, other.share.kind)
		}
	}
	if len(u.mu.all) == maxWarmUps {
		return fmt.Errorf("warm up %s: the node %w: %d other views are being warmed up", w.name, meta.ErrBusy, maxWarmUps)
	}
	u.mu.all = append(u.mu.all, w)
	return nil
}

func (u *warmUps) end(w *warmUp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.all = slices.DeleteFunc(u.mu.all, func(other *warmUp) bool { return other == w })
	close(w.ended)
}

// cancel ends the warm-ups that match, and waits for their end, or until ctx is done.
func (u *warmUps) cancel(ctx context.Context, match func(*warmUp) bool, cause error) {
	u.mu.Lock()
	all := slices.Clone(u.mu.all)
	u.mu.Unlock()
	for _, w := range all {
		if match(w) {
			w.stop(cause)
			select {
			case <-w.ended:
			case <-ctx.Done():
			}
		}
	}
}

func (u *warmUps) list() (all []control.WarmUp) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.mu.all {
		all = append(all, control.WarmUp{ViewName: w.called, Done: w.done.Load(), Of: w.of})
	}
	return all
}
