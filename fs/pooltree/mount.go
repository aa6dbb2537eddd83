package pooltree

import (
	"errors"
	"fmt"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"rankfs/fs/device"
)

// Mount attaches the tree to a directory, and serves it until Unmount.
func (t *Tree) Mount(dir string) error {
	files := &backing{refused: t.refused}
	raw := backed{fusefs.NewNodeFS(&rootDir{tree: t}, &fusefs.Options{NullPermissions: true, ServerCallbacks: files}), files}
	options := device.Options(t.config.Log)
	// Else the kernel asks for an extended attribute before every write.
	options.ExtraCapabilities = fuse.CAP_HANDLE_KILLPRIV_V2
	if !t.config.Passthrough {
		options.DisabledCapabilities = fuse.CAP_PASSTHROUGH
	}
	fd, err := device.Mount(dir, unix.S_IFDIR, unix.MS_NOSUID|unix.MS_NODEV, t.config.AllowOther)
	if err != nil {
		return fmt.Errorf("mount %s: %w", dir, device.Explain(err))
	}
	if t.server, err = fuse.NewServer(raw, fmt.Sprint("/dev/fd/", fd), options); err != nil {
		return errors.Join(fmt.Errorf("mount %s: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH))
	}
	t.served = make(chan struct{})
	go func() {
		defer close(t.served)
		t.server.Serve()
		t.names.tasks.Wait()
	}()
	return nil
}
