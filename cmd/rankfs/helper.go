package main

import (
	"context"

	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounting"
)

// The exit codes of mount(8), which a helper shares.
const (
	mountUsage   = 1
	mountStopped = 8
	mountFailed  = 32
)

// helper is mount.rankfs: always in the background, with the codes of mount(8).
func (p *program) helper(ctx context.Context, args []string) int {
	call, err := mounting.ParseHelper(args)
	if err == nil {
		err = p.mountFor(ctx, call)
	}
	switch code := p.report(err); code {
	case failure.ExitOK:
		return 0
	case failure.ExitUsage:
		return mountUsage
	case failure.ExitStopped:
		return mountStopped
	}
	return mountFailed
}

func (p *program) mountFor(ctx context.Context, call mounting.HelperCall) error {
	o, dir, err := call.Options.Complete(call.Dir)
	if err != nil || call.Fake {
		return err
	}
	if err := mounting.MayMount(dir); err != nil {
		return err
	}
	m, err := mounting.Background(ctx, p.run, o, dir)
	if err == nil && call.Verbose {
		m.Text(p.out)
	}
	return err
}
