// Command rankfs mounts datasets as batch files and manages the daemons that
// serve them.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args, &program{
		out: os.Stdout, err: os.Stderr,
		now: time.Now, serve: node.Run, stale: mounts.Stale, run: mounts.DefaultRunDir, cores: runtime.NumCPU(),
	})
	os.Exit(code)
}
