package pooltree

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/fs/device"
)

// A backing makes files of the pool known to the kernel, for go-fuse. That takes one refusal
// for a kernel without passthrough: it tries no file any more, and says nothing. It may be
// the file system, as one that is stacked on others. Here that is said, and files of others
// are tried. Of the same none is: an inode that is open without passthrough must not be
// opened with it.
//
// The lock is not held while the kernel is asked.
type backing struct {
	*fuse.Server
	refused func(file string, cause error)

	mu struct {
		sync.Mutex
		refuse map[uint64]bool // file systems, by device
	}
}

// RegisterBackingFd has neither an id nor an error for a file without passthrough.
func (b *backing) RegisterBackingFd(m *fuse.BackingMap) (int32, syscall.Errno) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(m.Fd), &st); err != nil {
		return 0, 0
	}
	b.mu.Lock()
	known := b.mu.refuse[st.Dev]
	b.mu.Unlock()
	if known {
		return 0, 0
	}
	id, errno := b.Server.RegisterBackingFd(m)
	if errno == 0 {
		return id, 0
	}
	b.mu.Lock()
	if b.mu.refuse == nil {
		b.mu.refuse = make(map[uint64]bool)
	}
	first := !b.mu.refuse[st.Dev]
	b.mu.refuse[st.Dev] = true
	b.mu.Unlock()
	if first {
		name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", m.Fd))
		b.refused(name, errno)
	}
	return 0, 0
}

// A backed file system has a backing in place of its server.
type backed struct {
	fuse.RawFileSystem
	backing *backing
}

// Init implements fuse.RawFileSystem.
func (b backed) Init(s *fuse.Server) { b.backing.Server = s }

// Flush implements fuse.RawFileSystem: there is nothing to write behind, and by this error
// the kernel asks no more at a close.
func (b backed) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

// Lseek implements fuse.RawFileSystem. What comes here as POLL is for the queues of the other
// tree: by this error the kernel takes all files of this mount for ready, and asks no more.
func (b backed) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	if in.Opcode == device.OpPoll {
		return fuse.ENOSYS
	}
	return b.RawFileSystem.Lseek(cancel, in, out)
}

// SetXAttr implements fuse.RawFileSystem. Of a file that takes no attribute the library says
// that it lacks that one, at which cp -p fails: it goes without where there are none.
func (b backed) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, attr string, data []byte) fuse.Status {
	status := b.RawFileSystem.SetXAttr(cancel, in, attr, data)
	if status == fuse.ENODATA {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return status
}
