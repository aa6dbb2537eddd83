package control

import (
	"context"
	"net"
	"os/user"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A right is which users may make a call.
type right int

const (
	admins   right = iota // root, the daemon's own user, and members of the admin group
	allUsers              // of this machine
	lookers               // all users, unless the request changes something
	owners                // all users whom the kernel knows: the answer is about what is theirs
)

// A changer is a request that may ask for a change or for nothing but an answer.
type changer interface{ changes() bool }

func (r *PlanRequest) changes() bool   { return r.Settle || r.Unsettle }
func (r *PolicyRequest) changes() bool { return r.Name != "" }
func (r *WarmRequest) changes() bool   { return !r.Check }

// An Admin says who may change things besides root and the daemon's own user:
// the members of a group, if there is one.
type Admin struct {
	Group *uint32
}

// A caller is the process at the other end of a connection, as it was when it
// connected. One that is not known is no admin.
type caller struct {
	uid    uint32
	gid    uint32
	groups []uint32
	known  bool
}

// may reports whether a caller has a right at all.
func (a Admin) may(c caller, r right) bool {
	switch r {
	case admins:
		return a.is(c)
	case owners:
		return c.known
	}
	return true
}

// is reports whether a caller may change things.
func (a Admin) is(c caller) bool {
	switch {
	case !c.known:
		return false
	case c.uid == 0 || c.uid == uint32(unix.Geteuid()):
		return true
	}
	return a.Group != nil && slices.Contains(c.groups, *a.Group)
}

// refuse is the answer to a caller that may not do an act.
func (a Admin) refuse(act string) error {
	who := "root"
	if a.Group != nil {
		name := strconv.FormatUint(uint64(*a.Group), 10)
		if g, err := user.LookupGroupId(name); err == nil {
			name = g.Name
		}
		who = "root, or a member of group " + name
	}
	return meta.Worded(meta.ErrDenied, "%s: this is not for all users of the mount; ask %s", act, who)
}

type callerKey struct{}

// withCaller adds the caller at the other end to a connection's context.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, callerOf(c))
}

// callerOf asks the kernel, which keeps both answers from the time of connect(2).
func callerOf(c net.Conn) (who caller) {
	if l, ok := c.(*limitedConn); ok {
		c = l.Conn
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return caller{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return caller{}
	}
	_ = raw.Control(func(fd uintptr) {
		credentials, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return
		}
		groups, err := peerGroups(int(fd))
		if err != nil {
			return
		}
		who = caller{credentials.Uid, credentials.Gid, append(groups, credentials.Gid), true}
	})
	return who
}

// peerGroups are the supplementary groups of a socket's other end.
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(4 * len(groups))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(unsafe.SliceData(groups))), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == unix.ERANGE && int(size) > 4*len(groups):
			groups = make([]uint32, size/4)
		case errno != 0:
			return nil, errno
		default:
			return groups[:size/4], nil
		}
	}
}
