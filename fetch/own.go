package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/mountinfo"
)

// An ownMount is that of this process: a file system that the process serves. A source in
// it would have the process wait for itself, where the kernel does not even let it be
// killed. So a path is walked here before anything is opened by it: component by
// component, links too, with descriptors that open nothing (O_PATH), and never past a
// component that lies on a mount of ours.
type ownMount struct {
	path    string
	devices []string // of what is mounted there and below: datasets, the shuffle pool
	points  []string // where these are mounted: path, below it, and elsewhere by bind mounts
}

// ownMountAt has the path for a mount that is still to be made, too.
func ownMountAt(path string) (ownMount, error) {
	m := ownMount{path: path, points: []string{path}}
	table, err := mountinfo.Read()
	if err != nil {
		return m, fmt.Errorf("look for the own mount: %w", err)
	}
	for _, at := range table {
		if at.Type == mountinfo.FSType && mountinfo.IsBelow(at.Point, path) {
			m.devices = append(m.devices, at.Device)
		}
	}
	for _, at := range table {
		if slices.Contains(m.devices, at.Device) {
			m.points = append(m.points, at.Point)
		}
	}
	return m, nil
}

// refuse returns an error if a local source touches the mount.
func (m ownMount) refuse(u uri.URI) error {
	at, dir, err := m.walk(u.Path)
	switch {
	case errors.Is(err, errOwn) || err == nil && mountinfo.IsBelow(at, m.path):
		return meta.Worded(meta.ErrInvalid, "%s lies in rankfs's own mount %s, which is no source: name the files where they are outside of it, or another dataset as dataset:NAME",
			u.Path, m.path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), meta.Impossible(err):
		return nil // an open of it finds that too, and says it
	case err != nil:
		return meta.AtPath(u.Path, err)
	case dir && slices.ContainsFunc(m.points, func(p string) bool { return mountinfo.IsBelow(p, at) }):
		return meta.Worded(meta.ErrInvalid, "%s has rankfs's own mount %s in it, which is no source: name a directory that does not have it, or mount elsewhere",
			u.Path, m.path)
	case dir && u.IsLMDB(): // whose lock file is not used if it is a link
		u.Path += "/data.mdb"
		return m.refuse(u)
	}
	return nil
}

var errOwn = errors.New("it is the own mount")

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// walk finds what path names, without links, and whether that is a directory. Its error
// is errOwn if the way leads to the mount.
func (m ownMount) walk(path string) (at string, dir bool, err error) {
	here, err := m.enter(unix.AT_FDCWD, "/", unix.O_DIRECTORY)
	if err != nil {
		return "", false, err
	}
	defer func() { here.close() }()
	links := 0
	for left := strings.Split(path, "/"); len(left) > 0; {
		name := left[0]
		if left = left[1:]; name == "" || name == "." {
			continue
		}
		next, err := m.enter(here.fd, name, unix.O_NOFOLLOW)
		if err != nil {
			return "", false, err
		}
		if next.mode&unix.S_IFMT != unix.S_IFLNK {
			here.close()
			here = next
			continue
		}
		if links++; links > maxLinks {
			next.close()
			return "", false, unix.ELOOP
		}
		to, err := next.follow()
		next.close()
		switch {
		case err != nil:
			return "", false, err
		case to == "": // a link of /proc, which names a file itself and not a path
			next, err = m.enter(here.fd, name, 0)
		case filepath.IsAbs(to):
			next, err = m.enter(unix.AT_FDCWD, "/", unix.O_DIRECTORY)
			left = append(strings.Split(to, "/"), left...)
		default:
			left = append(strings.Split(to, "/"), left...)
			continue
		}
		if err != nil {
			return "", false, err
		}
		here.close()
		here = next
	}
	at, err = os.Readlink(fmt.Sprint("/proc/self/fd/", here.fd))
	return at, here.mode&unix.S_IFMT == unix.S_IFDIR, err
}

// A handle is of a file or directory on the way of a walk.
type handle struct {
	fd   int
	mode uint16
}

func (h handle) close() { unix.Close(h.fd) }

// enter opens a name in a directory. The kernel knows on what device that is, and of
// what type: it asks no file system about it.
func (m ownMount) enter(from int, name string, flags int) (handle, error) {
	fd, err := unix.Openat(from, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return handle{}, err
	}
	var st unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	if err == nil && slices.Contains(m.devices, fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor)) {
		err = errOwn
	}
	if err != nil {
		unix.Close(fd)
		return handle{}, err
	}
	return handle{fd, st.Mode}, nil
}

// follow is the target of a link. It is empty for one of /proc.
func (h handle) follow() (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(h.fd, &st); err != nil || st.Type == unix.PROC_SUPER_MAGIC {
		return "", err
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(h.fd, "", text)
	return string(text[:n]), err
}
