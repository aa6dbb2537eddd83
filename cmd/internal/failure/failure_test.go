package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"rankfs/meta"
)

func TestExitCodes(t *testing.T) {
	for kind, want := range map[error]int{
		nil: 0, errors.New("x"): 1, meta.ErrNoSpace: 1, ErrUsage: 2, meta.ErrInvalid: 2, meta.ErrNotExist: 3,
		meta.ErrExist: 4, meta.ErrBusy: 4, meta.ErrStale: 5, meta.ErrCorrupt: 5, meta.ErrUnequal: 5, meta.ErrLost: 5, meta.ErrQuota: 4, context.Canceled: 130,
		meta.ErrUnavailable: 6, meta.Worded(meta.ErrUnavailable, "no answer now: %w", meta.ErrBusy): 6, meta.ErrDenied: 7,
	} {
		err := kind
		if kind != nil {
			err = Hint(fmt.Errorf("open x: %w", kind), "do y")
		}
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
