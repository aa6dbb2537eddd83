package fs

import (
	"errors"
	"fmt"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/device"
)

// Mount attaches the tree to a directory and serves it until Unmount, or until an
// admin unmounts it.
func (t *Tree) Mount(dir string) (err error) {
	if err := takePolls(); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	options := device.Options(t.config.Log)
	// A plain ls of a million names must not make a million inodes.
	options.ExtraCapabilities = fuse.CAP_READDIRPLUS_AUTO
	fd, err := t.attach(dir, t.config.AllowOther)
	if err != nil {
		return fmt.Errorf("mount %s: %w", dir, device.Explain(err))
	}
	if t.server, err = fuse.NewServer(t, fmt.Sprint("/dev/fd/", fd), options); err != nil {
		return errors.Join(fmt.Errorf("mount %s: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH), t.device.Close())
	}
	if t.config.NoPassthrough {
		t.reason = "switched off at mount"
	} else {
		t.probe()
	}
	if !t.passthrough.Load() {
		t.readAhead(dir)
	}
	t.served = make(chan struct{})
	t.notices.begin()
	go t.serve()
	return nil
}
