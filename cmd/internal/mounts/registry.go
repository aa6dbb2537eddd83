package mounts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// DefaultRunDir is where mounts are registered unless told otherwise.
const DefaultRunDir = "/run/rankfs"

// An OwnEntry is the entry of this process, for as long as it is open.
type OwnEntry struct {
	Entry
	Listener net.Listener // for control.Serve, on Entry.Socket

	file string
}

// Register enters this process as the daemon of mount into dir, which it
// makes, and listens on its socket. It takes over from a dead daemon and
// returns an error wrapping meta.ErrExist if a live one has the same mount.
// Both paths must be absolute.
func Register(dir, mount, state string) (*OwnEntry, error) {
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("register mount %s: %w", mount, err)
	}
	defer unlock()
	r := &OwnEntry{file: filepath.Join(dir, id(mount)+".json")}
	if old, err := read(r.file); err == nil && old.running() {
		return nil, meta.Worded(meta.ErrExist, "mount on %s: pid %d serves it already; unmount it with: rankfs umount %s", mount, old.PID, mount)
	}
	started, err := startTime(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("register mount %s: %w", mount, err)
	}
	r.Entry = Entry{os.Getpid(), started, mount, state, filepath.Join(dir, id(mount)+".sock")}
	if r.Listener, err = listen(r.Socket); err != nil {
		return nil, fmt.Errorf("register mount %s: %w", mount, err)
	}
	if err := write(r.file, r.Entry); err != nil {
		r.Listener.Close()
		return nil, fmt.Errorf("register mount %s: %w", mount, err)
	}
	return r, nil
}

// Share lets all users of this machine find the mount and ask its daemon.
func (r *OwnEntry) Share() error {
	if err := errors.Join(os.Chmod(r.Socket, 0o666), os.Chmod(r.file, 0o644)); err != nil {
		return fmt.Errorf("register mount %s: %w", r.Mount, err)
	}
	return nil
}

// Close takes the entry out and closes the socket.
func (r *OwnEntry) Close() error {
	return errors.Join(os.Remove(r.file), closed(r.Listener.Close()))
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// List returns the live mounts in dir that the caller may see, by mount point,
// and removes what dead daemons left there. A dir that is missing has none.
func List(dir string) ([]Entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var live []Entry
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		if filepath.Ext(name) != ".json" {
			continue
		}
		e, err := read(name)
		switch {
		case err == nil && e.answers():
			live = append(live, e)
		case err == nil && e.running(): // starts or ends just now
		case errors.Is(err, fs.ErrPermission): // another user's, and private
		case !errors.Is(err, fs.ErrNotExist):
			sweep(dir, name)
		}
	}
	slices.SortFunc(live, func(a, b Entry) int { return strings.Compare(a.Mount, b.Mount) })
	return live, nil
}

// sweep removes a dead entry, unless a new daemon has just taken it over.
func sweep(dir, file string) {
	unlock, err := lock(dir)
	if err != nil {
		return
	}
	defer unlock()
	if e, err := read(file); err == nil && e.running() {
		return
	}
	_ = os.Remove(file)
	_ = os.Remove(strings.TrimSuffix(file, ".json") + ".sock")
}

// id names the files of a mount. A socket's path has 107 bytes at most, so
// the mount point itself cannot be in it.
func id(mount string) string {
	sum := sha256.Sum256([]byte(mount))
	return hex.EncodeToString(sum[:8])
}

// lock makes dir, where its owner alone changes anything, and keeps other
// processes from changing what is in it.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	owner, self := info.Sys().(*syscall.Stat_t).Uid, uint32(os.Geteuid())
	switch mode := info.Mode().Perm(); {
	case owner != self:
		return nil, meta.Worded(meta.ErrDenied, "run directory %s is of user %d, and this is user %d; run it as that user", dir, owner, self)
	case mode&0o022 != 0:
		return nil, meta.Worded(meta.ErrDenied, "other users may write to the run directory %s; take that away with: chmod 755 %[1]s", dir)
	case mode != 0o755: // the umask's doing, or that of an older release
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

func listen(socket string) (net.Listener, error) {
	if len(socket) > 107 {
		return nil, fmt.Errorf("socket path %s is longer than 107 bytes: use a shorter run directory", socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func write(file string, e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, append(data, '\n'), 0o600)
}

func read(file string) (Entry, error) {
	var e Entry
	data, err := os.ReadFile(file)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(data, &e)
}
