package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
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

// What is wrong with a path is in the log as commands say it.
func TestAttr(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: Attr}))
	log.Warn("x", "cause", fmt.Errorf("y: %w", &fs.PathError{Op: "open", Path: "/a", Err: fs.ErrNotExist}), "n", 1)
	if want := `cause="y: /a: there is no such file or directory" n=1`; !strings.Contains(b.String(), want) {
		t.Errorf("%q, want %q in it", b.String(), want)
	}
}
