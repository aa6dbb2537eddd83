package cache

import (
	"fmt"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
)

// detach closes the descriptor and the mapping of a file that the kernel knows as
// a backing file and that has no other user.
func (r *ram) detach(f *ramFile) bool {
	if !r.handles || !f.identify() {
		return false
	}
	f.close()
	f.fd, f.mem = -1, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.shut()
	return true
}

// attach gives a file its descriptor again.
func (r *ram) attach(f *ramFile) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.fd >= 0 {
		return nil
	}
	fd, err := r.reopen(f)
	if err != nil {
		return err
	}
	f.fd = fd
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.reopened()
	return nil
}

func (r *ram) reopen(f *ramFile) (fd int, err error) {
	fd, err = unix.OpenByHandleAt(int(r.root.Fd()), unix.NewFileHandle(f.file.kind, f.file.id[:]), unix.O_RDWR|unix.O_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open ram slab again by its handle: %w", err)
	}
	if err := disks.Affordable(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bytes are the bytes of a file, which is mapped if it was not.
func (r *ram) bytes(f *ramFile) ([]byte, error) {
	if err := r.attach(f); err != nil {
		return nil, err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.mem == nil && f.size > 0 {
		if err := f.mapIt(); err != nil {
			return nil, fmt.Errorf("map ram slab: %w", err)
		}
	}
	return f.mem, nil
}

// canReopen finds out whether files can be opened by their handles: not everywhere
// may root do that.
func (r *ram) canReopen() bool {
	f, err := r.create(1)
	if err != nil {
		return false
	}
	defer f.close()
	if !f.identify() {
		return false
	}
	fd, err := r.reopen(f)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
