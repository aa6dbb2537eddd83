package main

import (
	"context"

	"rankfs/cmd/internal/failure"
	"rankfs/cmd/internal/mounting"
	"rankfs/cmd/internal/mounts"
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
	return p.mountCode(err)
}

// umountHelper is umount.fuse.rankfs, by which umount(8) takes down a mount with its
// shuffle pool. Of all mounts it calls that for the pool first, and then for the whole.
func (p *program) umountHelper(ctx context.Context, args []string) int {
	call, err := mounting.ParseUmount(args)
	if err != nil {
		return p.mountCode(err)
	}
	was, err := mounts.UnmountPool(call.Dir, call.Lazy)
	if err == nil && !was {
		var done mounts.Unmounted
		if done, err = p.unmount(ctx, call.Dir, call.Lazy); err == nil && call.Verbose {
			writeUnmounted(p.out, done)
		}
	}
	return p.mountCode(err)
}

// mountCode reports an error, and has the code of mount(8) for it.
func (p *program) mountCode(err error) int {
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
	if err != nil {
		return err
	}
	if call.Fake {
		return o.Check(dir)
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
