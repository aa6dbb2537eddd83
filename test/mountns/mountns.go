// Package mountns has a test with a mount namespace of its own let go of the mounts of
// others: a daemon goes on as long as any namespace has its mount.
package mountns

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/meta/mountinfo"
)

// LetGo detaches what other tests had mounted when this process got its mount namespace,
// which is private: rankfs, what jobs of its shuffle pools have in memory, and filesystems
// that tests serve themselves. No path below one is looked up.
func LetGo() error {
	table, err := mountinfo.Read()
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(table) { // what is mounted on another first
		rankfs := m.Type == "fuse.rankfs" || m.Type == "tmpfs" && m.Source == "rankfs-pool"
		served := strings.HasPrefix(m.Type, "fuse.") && strings.HasPrefix(m.Point, os.TempDir()+"/")
		if !rankfs && !served {
			continue
		}
		if err := unix.Unmount(m.Point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("let go of the mount %s: %w", m.Point, err)
		}
	}
	return nil
}
