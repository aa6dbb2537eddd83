package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/mounts"
	"rankfs/cmd/internal/node"
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
