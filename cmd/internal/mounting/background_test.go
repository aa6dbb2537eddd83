package mounting

import (
	"context"
	"errors"
	"os"
	"testing"

	"rankfs/cmd/internal/failure"
)

// What a background child reports is what its parent ends with.
func TestToldExitCode(t *testing.T) {
	if got := failure.ExitCode(failure.Hint(toldError{outcome{Message: "it is taken", Code: 4}}, "wait")); got != 4 {
		t.Errorf("exit code %d", got)
	}
}

// A mount that is stopped before its daemon is ready says so, and what became of that.
func TestStoppedBeforeItIsReady(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := awaitReady(ctx, r); !errors.Is(err, context.Canceled) || err.Error() != "stopped by a signal before the daemon was ready, which was ended" {
		t.Errorf("%v", err)
	}
}
