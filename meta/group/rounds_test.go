package group

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
)

// Each caller gets an answer to a question that was asked after it came, and callers that
// come while questions are under way share the next one.
func TestRoundsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		asked := uint64(0)
		var mu sync.Mutex
		r := &rounds{ask: func() (heartbeat, error) {
			mu.Lock()
			asked++
			mu.Unlock()
			now := heartbeat{Applied: uint64(time.Since(begun))}
			time.Sleep(10 * time.Millisecond)
			return now, nil
		}}
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				came := uint64(time.Since(begun))
				is, ended, err := r.join(t.Context())
				if !ended || err != nil || is.Applied < came {
					t.Errorf("caller %d came at %d, and has the answer of %d: %v, %v", i, came, is.Applied, ended, err)
				}
			})
		}
		callers.Wait()
		r.close()
		if asked != 3 {
			t.Errorf("100 callers in 10 ms have asked %d questions of 10 ms each", asked)
		}
	})
}

// A question that hangs holds up those alone who have asked it.
func TestRoundThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var asked atomic.Bool
		r := &rounds{}
		r.ask = func() (heartbeat, error) {
			if !asked.Swap(true) {
				<-hang
			}
			return heartbeat{Applied: 7}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ended, _ := r.join(ctx); ended {
			t.Error("a question that hangs was answered")
		}
		for range 3 {
			if is, ended, err := r.join(t.Context()); !ended || err != nil || is.Applied != 7 {
				t.Errorf("%v, %v, %v", is, ended, err)
			}
		}
		close(hang)
		r.close()
		if _, ended, err := r.join(t.Context()); !ended || !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("a question when this node had ended: %v, %v", ended, err)
		}
	})
}
