package mounts

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"rankfs/meta/mountinfo"
)

// noteTime is how long mount(8) may take for a line of its table.
const noteTime = 5 * time.Second

// Note has umount(8) call the helper of ours for the mount at point. By itself it asks
// statfs(2) what is mounted, which says fuse, whichever it is; of a mount that its own
// table of options has it knows the type, and the helper. A note that a daemon which was
// killed has left is replaced.
func Note(ctx context.Context, point string) error {
	_ = Unnote(ctx, point)
	return tell(ctx, "/bin/mount", "-i", "-f", "--no-canonicalize", "-t", mountinfo.FSType, "-o", "uhelper="+mountinfo.FSType, "rankfs", point)
}

// Unnote takes that back.
func Unnote(ctx context.Context, point string) error {
	return tell(ctx, "/bin/umount", "-i", "--fake", "--no-canonicalize", point)
}

func tell(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
