package failure

import (
	"context"
	"errors"

	"rankfs/meta"
)

// The exit codes. A script may branch on them.
const (
	ExitOK       = 0
	ExitFailure  = 1
	ExitUsage    = 2
	exitNotFound = 3
	exitTaken    = 4
	exitSource   = 5
	exitAway     = 6
	exitDenied   = 7
	ExitStopped  = 130
)

// ExitCode is the code of an error: its own if it has one, as the error of another
// process does, or else that of its kind.
func ExitCode(err error) int {
	kinds := []struct {
		err  error
		code int
	}{
		{ErrUsage, ExitUsage},
		{meta.ErrInvalid, ExitUsage},
		{meta.ErrNotExist, exitNotFound},
		{meta.ErrExist, exitTaken},
		{meta.ErrUnavailable, exitAway}, // before busy: some errors are both
		{meta.ErrBusy, exitTaken},
		{meta.ErrQuota, exitTaken},
		{meta.ErrStale, exitSource},
		{meta.ErrCorrupt, exitSource},
		{meta.ErrUnequal, exitSource},
		{meta.ErrLost, exitSource},
		{meta.ErrDenied, exitDenied},
		{context.Canceled, ExitStopped},
	}
	if err == nil {
		return ExitOK
	}
	var own interface{ ExitCode() int }
	if errors.As(err, &own) {
		return own.ExitCode()
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.code
		}
	}
	return ExitFailure
}
