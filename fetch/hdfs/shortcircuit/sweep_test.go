package shortcircuit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"rankfs/test/eventually"
)

// A slowDir has nothing in it, which it tells once it may.
type slowDir struct {
	fs.Inode
	came chan struct{} // one for each lookup
	open chan struct{}
}

// Lookup implements fs.NodeLookuper.
func (d *slowDir) Lookup(context.Context, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	d.came <- struct{}{}
	<-d.open
	return nil, syscall.ENOENT
}

// Files are not closed while the sweep looks at them: it would be the one to close them.
func TestClosedBesideTheSweep(t *testing.T) {
	dir := &slowDir{came: make(chan struct{}, 100), open: make(chan struct{})}
	tell := sync.OnceFunc(func() { close(dir.open) })
	mnt := t.TempDir()
	server, err := fs.Mount(mnt, dir, &fs.Options{MountOptions: fuse.MountOptions{FsName: "slow", DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	x := newReplica(t, 1000, 512, 2)
	d := newDatanode(t, pass(x.data, x.sums))
	c := d.client(t)
	t.Cleanup(tell)
	if err := read(c, block(1, 1000), make([]byte, 1000), 0); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(d.socket)
	if err := errors.Join(os.Rename(folder, folder+".0"), os.Symlink(mnt, folder)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder + ".0") })
	eventually.True(t, "the sweep looks", func() bool { return len(dir.came) > 0 })
	c.Close()
	if n := c.Snapshot().Files; n != 1 {
		t.Errorf("while the sweep looks at a file %d are open", n)
	}
	tell()
	eventually.True(t, "all is closed", func() bool { return c.Snapshot().Files == 0 })
}
