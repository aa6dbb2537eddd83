package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/node"
)

// A mount that a signal stops before it is ready says so, whatever it was at.
func TestMountThatIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var says strings.Builder
	p := &program{out: io.Discard, err: &says, finder: finder{run: t.TempDir()}, cores: 2,
		serve: func(ctx context.Context, _ node.Config, _ func()) error {
			stop()
			return fmt.Errorf("join the cluster: %w", ctx.Err())
		}}
	dir := t.TempDir()
	code := run(ctx, []string{"rankfs", "mount", dir, "--state", t.TempDir()}, p)
	if want := "rankfs: mount on " + dir + ": stopped by a signal before it was ready\n"; code != failure.ExitStopped || says.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, says.String(), want)
	}
}
