package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounting"
	"rankfs/meta"
)

func (p *program) mountCommand() *cobra.Command {
	o := mounting.DefaultOptions()
	var background bool
	var ready int
	c := &cobra.Command{
		Use:   "mount DIR",
		Short: "Mount on DIR and serve it until it is unmounted",
		Long: `Mount on DIR and serve it until it is unmounted or the command is stopped.

DIR must exist. A mount whose daemon has died is replaced; one that was killed
and has not ended yet is waited for.

Only root can mount. All users of the machine may then read, as --umask permits,
and look at everything by rankfs status and the like; to change something is for
root, and for the members of --admin-group.`,
		Args: wants("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			o, dir, err := o.Complete(args[0])
			if err != nil {
				return usage(c, err)
			}
			if err := mounting.MayMount(dir); err != nil {
				return err
			}
			if background {
				m, err := mounting.Background(c.Context(), p.run, o, dir)
				if err != nil {
					return err
				}
				return p.print(m, m.Text)
			}
			return p.mountHere(c.Context(), o, dir, ready)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&background, "background", false, "return when the mount is ready")
	o.Flags(f)
	f.IntVar(&ready, "ready-fd", -1, "tell the parent of a background mount how it went")
	_ = f.MarkHidden("ready-fd")
	return c
}

// mountHere serves the mount in this process. With a ready descriptor, it is
// the child of a background mount.
func (p *program) mountHere(ctx context.Context, o mounting.Options, dir string, readyFD int) error {
	tell := mounting.NewReporter(readyFD)
	ready := false
	err := p.serveMount(ctx, o, dir, func() {
		ready = true
		mounting.Notify("READY=1")
		if !tell.Ready() {
			m := mounting.Mounted{Mount: dir, PID: os.Getpid(), State: o.State}
			_ = p.print(m, m.Text)
		}
	})
	if !ready && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = meta.Worded(context.Canceled, "mount on %s: stopped by a signal before it was ready", dir)
	}
	tell.Failed(err)
	return err
}

func (p *program) serveMount(ctx context.Context, o mounting.Options, dir string, ready func()) error {
	config, err := o.Config(dir)
	if err != nil {
		return err
	}
	level, err := o.Level()
	if err != nil {
		return err
	}
	config.RunDir, config.Version = p.run, version()
	config.Log = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level, ReplaceAttr: failure.Attr}))
	defer mounting.Notify("STOPPING=1")
	return p.serve(ctx, config, ready)
}
