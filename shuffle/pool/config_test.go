package pool_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/shuffle/disk"
	"rankfs/shuffle/pool"
)

// A disk whose file system is read-only is refused to a pool that has not had it yet, with what to do, and
// not to one that has: it reads what is there.
func TestTryADiskThatIsReadOnly(t *testing.T) {
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	must(os.Mkdir(at, 0o700), unix.Mount("none", at, "tmpfs", 0, ""))
	defer func() { must(unix.Unmount(at, 0)) }()
	turn := func(flags uintptr) {
		t.Helper()
		must(unix.Mount("", at, "", unix.MS_REMOUNT|flags, ""))
	}
	turn(unix.MS_RDONLY)
	if err := (pool.Disk{Dir: at}).Try(dir); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "have that take writes") {
		t.Errorf("it is read-only, and new: %v", err)
	}
	for range 2 {
		turn(0)
		d, err := disk.Open(at, 1<<20, "00000000000000aa", filepath.Join(dir, ".disk"), slog.New(slog.DiscardHandler))
		must(err)
		must(d.Close())
		turn(unix.MS_RDONLY)
		if err := (pool.Disk{Dir: at}).Try(dir); err != nil {
			t.Errorf("it is read-only, and the pool has had it: %v", err)
		}
	}
}
