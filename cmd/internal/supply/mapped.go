package supply

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A mapped file carries the batches of one pair. It only ever grows: a client
// that maps it must not lose pages. The lock on it keeps a second server away
// from the pair. The mapping is written by the kernel alone, in pread, where a
// file that another process has cut is EFAULT and not a signal.
type mapped struct {
	path    string
	fd      int
	id      fileID
	data    []byte
	created bool
}

// openMapped opens or makes the file and takes its lock.
func openMapped(path string) (*mapped, error) {
	for range 10 {
		m, err := lockMapped(path)
		if err != nil || m != nil {
			return m, err
		}
	}
	return nil, fmt.Errorf("mapped file %s: is being made and removed by others", path)
}

// lockMapped is nil without an error if the file was removed, by a server that
// ended, between its opening and its locking.
func lockMapped(path string) (*mapped, error) {
	m := &mapped{path: path, created: true}
	var err error
	m.fd, err = openFile(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if errors.Is(err, unix.EEXIST) {
		m.created = false
		if _, err := findMapped(path); err != nil {
			return nil, err
		}
		m.fd, err = openFile(path, unix.O_RDWR|unix.O_NONBLOCK)
	}
	if err != nil {
		return nil, fmt.Errorf("open mapped file %s: %w", path, err)
	}
	if err := unix.Flock(m.fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(m.fd)
		return nil, fmt.Errorf("mapped file %s: another supply, or another line, uses it: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		m.close()
		return nil, fmt.Errorf("stat mapped file %s: %w", path, err)
	}
	m.id = idOf(&st)
	if now, err := findMapped(path); err != nil || now != m.id {
		m.close()
		return nil, nil
	}
	return m, nil
}

func findMapped(path string) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fileID{}, &os.PathError{Op: "stat mapped file", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fileID{}, fmt.Errorf("mapped file %s: exists and is not a regular file: remove it, or name another", path)
	}
	return idOf(&st), nil
}

// hold makes the file and the mapping large enough.
func (m *mapped) hold(size int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(m.fd, &st); err != nil {
		return fmt.Errorf("stat mapped file %s: %w", m.path, err)
	}
	if st.Size < size {
		err := unix.Fallocate(m.fd, 0, 0, size)
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = unix.Ftruncate(m.fd, size)
		}
		if err != nil {
			return fmt.Errorf("grow mapped file %s to %d bytes: %w", m.path, size, err)
		}
		st.Size = size
	}
	if int64(len(m.data)) >= size {
		return nil
	}
	m.unmap()
	data, err := unix.Mmap(m.fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes of %s: %w", st.Size, m.path, err)
	}
	m.data = data
	return nil
}

func (m *mapped) unmap() {
	if m.data != nil {
		unix.Munmap(m.data)
		m.data = nil
	}
}

// inMemory reports whether the file's pages are never written to a disk.
func inMemory(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false
	}
	return st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC || st.Type == unix.HUGETLBFS_MAGIC
}

// remove removes the file if this server made it. It must come before close,
// while the lock still keeps others from taking the file over.
func (m *mapped) remove() {
	if id, err := findMapped(m.path); m.created && err == nil && id == m.id {
		os.Remove(m.path)
	}
}

func (m *mapped) close() {
	m.unmap()
	unix.Close(m.fd)
}
