package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/mounting"
	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
	"rankfs/cmd/internal/supply"
)

// A program is one run of the command: where it writes, what it stands on,
// and the flags that all its subcommands share.
type program struct {
	out, err io.Writer
	now      func() time.Time
	serve    func(ctx context.Context, c node.Config, ready func()) error
	stale    func() []string // mounts whose daemon is dead
	cores    int             // of this machine

	run   string // the run directory
	mount string // which mount to ask, if there are several
	json  bool

	asked mounts.Entry // the daemon that a command found
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, p *program) int {
	if filepath.Base(args[0]) == mounting.HelperName {
		return p.helper(ctx, args[1:])
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
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
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
		p.tokenCommand(), p.nodeCommand(), p.planCommand(), p.queueCommand(), p.cacheCommand(), p.warmCommand(), p.traceCommand(), p.simulateCommand(),
		p.statusCommand(), p.explainCommand(), p.stallCommand(), p.statsCommand(), p.supplyCommand(), p.versionCommand(), exitCodesTopic(),
	)
	return root
}

// supplyCommand finds the mount as every other command does.
func (p *program) supplyCommand() *cobra.Command {
	c := supply.Command(func(mount string) (string, error) {
		p.mount = mount
		e, err := p.find()
		return e.Mount, err
	}, p.print)
	c.Args = wants()
	return c
}

// mountFlag adds the flag that names the mount of the daemon to ask.
func (p *program) mountFlag(c *cobra.Command) {
	c.PersistentFlags().StringVar(&p.mount, "mount", "", "`DIR` where it is mounted, if several are")
}

// print writes v as JSON if that was asked for, and as text otherwise.
func (p *program) print(v any, text func(io.Writer)) error {
	if !p.json {
		text(p.out)
		return nil
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
