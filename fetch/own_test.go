package fetch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/meta"
)

// deaf mounts a file system that answers no request. It returns the requests that were
// made so far, of which the first is the kernel's own.
func deaf(t *testing.T, at string) (asked func() int) {
	t.Helper()
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("rankfs", at, "fuse.rankfs", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", device)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(at, unix.MNT_DETACH)
		unix.Close(device) // a call that waits for an answer ends with an error
	})
	requests := 0
	return func() int {
		for buffer := make([]byte, 1<<17); ; requests++ {
			if _, err := unix.Read(device, buffer); err != nil {
				return requests
			}
		}
	}
}

// No source has the process wait for the mount that it serves: whatever the way to it, it
// is refused, and the mount is asked nothing.
func TestOwnMount(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"w/m", "w/data", "bound", "above/in", "db", "work"} {
		must(os.MkdirAll(path(name), 0o755))
	}
	for _, name := range []string{"w/data/f", "f", "work/f", "mm"} {
		must(os.WriteFile(path(name), []byte("a\n"), 0o644))
	}
	mount := path("w/m")
	for link, to := range map[string]string{
		"abs": mount + "/datasets/a/rank-0/batch-000000", "rel": "w/m", "chain": "rel", "up": "work/../w/m/x",
		"db/data.mdb": mount + "/x", "loop": "loop", "good": "w/data", "work/m": "../w/m",
	} {
		must(os.Symlink(to, path(link)))
	}
	asked := deaf(t, mount)
	for _, at := range []string{"bound", "above/in"} {
		must(unix.Mount(mount, path(at), "", unix.MS_BIND, ""))
		t.Cleanup(func() { unix.Unmount(path(at), unix.MNT_DETACH) })
	}
	fd, err := unix.Open(path("rel"), unix.O_PATH|unix.O_CLOEXEC, 0)
	must(err)
	t.Cleanup(func() { unix.Close(fd) })
	before := asked()
	env := &fetch.Env{Mount: mount}
	tests := []struct{ name, uri, says string }{
		{"the mount", "file:" + mount, "own mount"},
		{"as files", "file:" + mount + "?as=files", "own mount"},
		{"a batch", "file:" + mount + "/datasets/a/rank-0/batch-000000", "lies in rankfs's own mount " + mount},
		{"in the pool", "file:" + mount + "/shuffle/job/scratch/d", "lies in"},
		{"lmdb", "lmdb:" + mount + "/x", "lies in"},
		{"above", "file:" + path("w"), "has rankfs's own mount " + mount + " in it"},
		{"lmdb above", "lmdb:" + path("w"), "in it"},
		{"far above", "file:/?as=files", "in it"},
		{"absolute link", "file:" + path("abs"), "lies in"},
		{"relative link", "file:" + path("rel") + "/x", "lies in"},
		{"link to a link", "file:" + path("chain"), "lies in"},
		{"link that goes up", "file:" + path("up"), "lies in"},
		{"link in a directory", "file:" + path("work/m/x"), "lies in"},
		{"bind mount", "file:" + path("bound/x"), "lies in"},
		{"above a bind mount", "file:" + path("above"), "in it"},
		{"link of /proc", fmt.Sprintf("file:/proc/self/fd/%d/x", fd), "lies in"},
		{"data of an lmdb", "lmdb:" + path("db"), "lies in"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() {
				_, err := fetch.Open(test.uri, env)
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want one saying %q", err, test.says)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("it waits for the mount")
			}
			if n := asked(); n != before {
				t.Errorf("the mount was asked %d times", n-before)
			}
		})
	}
	for name, uri := range map[string]string{
		"a file": "file:" + path("f"), "a directory": "file:" + path("w/data"), "a link": "file:" + path("good/f"),
		"a name that begins alike": "file:" + path("mm"), "another link of /proc": "file:/proc/self/root" + path("f"),
		"links that are not followed": "file:" + path("work"),
	} {
		if _, err := fetch.Open(uri, env); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, missing := range []string{"file:" + path("none"), "file:" + path("f/x"), "file:" + path("loop")} {
		_, with := fetch.Open(missing, env)
		if _, without := fetch.Open(missing, nil); with == nil || with.Error() != without.Error() {
			t.Errorf("got %v, want %v", with, without)
		}
	}
	// The mount may still be to be made, after a restart.
	before = asked()
	if _, err := fetch.Open("file:"+path("w/data/f"), &fetch.Env{Mount: path("w/data")}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("a mount that is to be made: %v", err)
	}
}
