package mounting

import (
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// groupID is the number of a group, given by that or by its name; nil for none.
func groupID(group string) (*uint32, error) {
	if group == "" {
		return nil, nil
	}
	text := group
	if g, err := user.LookupGroup(group); err == nil {
		text = g.Gid
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, meta.Worded(meta.ErrNotExist, "admin group %q is not there; use a group that 'getent group' shows, or a number", group)
	}
	gid := uint32(id)
	return &gid, nil
}

// MayMount refuses a user that the kernel would refuse, before anything is made.
func MayMount(dir string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil // the kernel will say it
	}
	if data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0 {
		return nil
	}
	return failure.Hint(meta.Worded(meta.ErrDenied, "mount on %s: only root can mount, or a process with CAP_SYS_ADMIN", dir),
		"have root run: rankfs mount %s --background\nthen all users of this machine can read it", dir)
}
