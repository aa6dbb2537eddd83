package batch

import (
	"context"
	"errors"
	"time"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// retryTime bounds how long an open waits for a source that is busy, as for a batch;
// retryPause is the time between two attempts.
const (
	retryTime  = 2 * time.Minute
	retryPause = time.Second
)

// Again reports whether there is to be another attempt of an open that was begun then and has
// come to *err: one a second for two minutes while the source, or the node with the copy of
// it, is busy, or this process may open nothing more. That node may be making the copy, or be
// gone; then another node takes its place a few seconds later. Again waits for that second, of
// which the account is told. If it says no, *err is the error of the open.
func (*Source) Again(ctx context.Context, account *stall.Open, begun time.Time, err *error) bool {
	var busy notYet
	wait := errors.As(*err, &busy)
	if wait {
		*err = busy.error
	}
	// The cache's wait for a descriptor has an end of its own.
	outOfFiles := meta.OutOfFiles(*err) && !errors.Is(*err, context.DeadlineExceeded)
	if !wait && !errors.Is(*err, errCopyOwner) && !outOfFiles {
		return false
	}
	if time.Since(begun) > retryTime {
		*err = meta.Worded(context.DeadlineExceeded, "source not ready after %s: %w", meta.FormatTime(retryTime), *err)
		return false
	}
	if left := pause(ctx, account); left != nil {
		*err = left
		return false
	}
	return true
}

func pause(ctx context.Context, account *stall.Open) error {
	defer account.End(account.For(stall.Source))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryPause):
		return nil
	}
}
