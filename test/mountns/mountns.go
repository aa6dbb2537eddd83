// Package mountns has a test with a mount namespace of its own let go of the mounts of
// others: a daemon goes on as long as any namespace has its mount.
package mountns

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LetGo detaches what other tests had mounted when this process got its mount namespace,
// which is private: rankfs, what jobs of its shuffle pools have in memory, and filesystems
// that tests serve themselves. No path below one is looked up.
func LetGo() error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, line := range slices.Backward(slices.Collect(strings.Lines(string(table)))) { // what is mounted on another first
		point, err := strconv.Unquote(`"` + strings.Fields(line)[4] + `"`) // blanks are \040
		if err != nil {
			return fmt.Errorf("read mount table: odd line %q", line)
		}
		served := strings.Contains(line, " - fuse.") && strings.HasPrefix(point, os.TempDir()+"/")
		if !served && !strings.Contains(line, " - fuse.rankfs ") && !strings.Contains(line, " - tmpfs rankfs-pool ") {
			continue
		}
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("let go of the mount %s: %w", point, err)
		}
	}
	return nil
}
