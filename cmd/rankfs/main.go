// Command rankfs mounts datasets as batch files and manages the daemons that
// serve them.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/mounting"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args, &program{
		out: os.Stdout, err: os.Stderr,
		now: time.Now, serve: node.Run, cores: runtime.NumCPU(),
		finder: finder{run: mounts.DefaultRunDir, stale: mounts.Stale},
	})
	os.Exit(code)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, p *program) int {
	switch filepath.Base(args[0]) {
	case mounting.HelperName:
		return p.helper(ctx, args[1:])
	case mounting.UmountHelperName:
		return p.umountHelper(ctx, args[1:])
	}
	if len(args) > 1 && args[1] == mounting.HelperName {
		return p.helper(ctx, args[2:])
	}
	root := p.root()
	root.SetArgs(args[1:])
	return p.report(p.noAnswer(root.ExecuteContext(ctx)))
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rankfs",
		Short: "Datasets as batch files, one directory for each rank",
		Long: `rankfs mounts datasets as directories of batch files, one directory for each
rank of a parallel job. A rank opens its next batch and maps it; the bytes are
in memory already.

  rankfs mount /mnt/rankfs --background
  rankfs dataset create train --source lmdb:/data/train --ranks 8
  ls /mnt/rankfs/datasets/train/rank-0`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) (err error) {
			if p.run, err = filepath.Abs(p.run); err != nil { // a daemon in the background is elsewhere
				return err
			}
			return missingFlags(c)
		},
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.BoolVar(&p.json, "json", false, "write the result to stdout as one JSON value")
	flags.StringVar(&p.run, "run", p.run, "directory where running mounts are registered")
	_ = flags.MarkHidden("run")
	root.AddCommand(
		p.mountCommand(), p.umountCommand(), p.datasetCommand(),
		p.tokenCommand(), p.nodeCommand(), p.planCommand(), p.queueCommand(), p.shuffleCommand(), p.cacheCommand(), p.warmCommand(), p.traceCommand(), p.simulateCommand(),
		p.statusCommand(), p.explainCommand(), p.stallCommand(), p.statsCommand(), p.supplyCommand(), p.versionCommand(), exitCodesTopic(),
	)
	brought(root)
	return root
}
