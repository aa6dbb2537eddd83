package pool

import (
	"cmp"
	"context"
	"time"
)

// sleep waits for so long, and reports whether it did: false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// cause is why a context of a request has ended.
func cause(ctx context.Context) error { return cmp.Or(ctx.Err(), context.Canceled) }
