package supply

import (
	"context"
	"fmt"
	"time"

	"rankfs/meta"
)

// within runs f and stops waiting for it after a time, or when ctx is done. A
// call that hangs in a dead mount cannot be interrupted: its goroutine ends
// when the kernel lets it go.
func within[T any](ctx context.Context, limit time.Duration, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var zero T
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
		return zero, fmt.Errorf("the mount did not answer within %s", meta.FormatTime(limit))
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}
