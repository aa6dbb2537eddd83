package pool

import (
	"fmt"
	"os"
	"syscall"

	"rankfs/shuffle/access"
)

// write has a file written until done is called. One that is being committed, or that may
// have been, is not written any more.
func (f *files) write(name string) (done func(), err error) {
	if done, err = f.Use(name); err != nil {
		return nil, err
	}
	if info, err := f.root.Lstat(name); err == nil && info.Mode().IsRegular() && links(info) > 1 {
		done()
		return nil, access.ErrCommitting(name)
	}
	return done, nil
}

// opened has a file open to write until done is called, by whatever name.
func (f *files) opened(file *os.File) (done func(), err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return f.Use(writtenName(info))
}

// writtenName stands, among names, for a file that is open to write: its own may change.
func writtenName(file os.FileInfo) string { return fmt.Sprintf("opened/%d", inode(file)) }

func links(info os.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
