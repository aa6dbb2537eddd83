package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
)

// Copies that are made again come one at a time, and none for as long as the one before took; who
// waits for too long is to come later.
func TestRepairsTakeHalfOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := NewRepairs()
		end, err := turn.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := turn.Take(t.Context()); !errors.Is(err, meta.ErrBusy) || time.Since(begun) != turnTime {
			t.Errorf("beside another, after %v: %v", time.Since(begun), err)
		}
		end()
		time.Sleep(turnTime) // as long as it took
		for range 2 {
			if end, err = turn.Take(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			end()
			begun = time.Now()
			if end, err = turn.Take(t.Context()); err != nil || time.Since(begun) != 3*time.Second {
				t.Errorf("behind one that took 3 s, after %v: %v", time.Since(begun), err)
			}
			end()
		}
		ctx, cancel := context.WithCancel(t.Context())
		end, err = turn.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := turn.Take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left: %v", err)
		}
		end()
	})
}
