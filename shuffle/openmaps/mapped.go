package openmaps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"rankfs/meta/fault"
)

// A mapped file is read where it is. A piece of some KiB takes longer to be asked for by a
// system call than to be copied. It never changes while it is open.
type mapped struct {
	*os.File
	bytes []byte // nil: the file is read
	size  int64  // of a file in memory
}

// maxMapped bounds the files of maps that this process has mapped: the kernel lets a process
// have 65,530 mappings, of which Go's heap needs some. Others are read.
const maxMapped = 16384

var mappings atomic.Int64

// newMapped maps a file in memory. One that cannot be mapped, or is empty, is read.
func newMapped(file *os.File) mapped {
	m := mapped{File: file}
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return m
	}
	m.size = info.Size()
	if mappings.Add(1) <= maxMapped {
		m.bytes, _ = unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	}
	if m.bytes == nil {
		mappings.Add(-1)
	}
	return m
}

// ReadAt implements io.ReaderAt.
func (m *mapped) ReadAt(b []byte, off int64) (n int, err error) {
	if m.bytes == nil {
		return m.File.ReadAt(b, off)
	}
	err = m.guard(func() error {
		if n = copy(b, m.bytes[min(off, int64(len(m.bytes))):]); n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

// guard calls f, which reads the bytes. Bytes that the disk does not give are EIO.
func (m *mapped) guard(f func() error) error {
	err := fault.Guard(f)
	var at *fault.Error
	if errors.As(err, &at) {
		return fmt.Errorf("read %s: %w (%w)", m.Name(), unix.EIO, err)
	}
	return err
}

// Close implements io.Closer. No read may be under way.
func (m *mapped) Close() (err error) {
	if m.bytes != nil {
		err = unix.Munmap(m.bytes)
		m.bytes = nil
		mappings.Add(-1)
	}
	return errors.Join(err, m.File.Close())
}
