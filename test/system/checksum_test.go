package system_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// checksum is the attribute of that name.
func checksum(path string) (string, error) {
	b := make([]byte, 64)
	n, err := unix.Getxattr(path, "user.rankfs.checksum", b)
	return string(b[:max(0, n)]), err
}

// The checksum of a batch is of the bytes that are read of it, also before a rank has
// opened it, when it is on a disk, packed, given up or empty. It is not listed, so
// looking at all attributes fetches nothing; other files have none.
func TestChecksum(t *testing.T) {
	t.Parallel()
	p := newNode(t)
	n, s := p.start("--ram", "16MiB", "--nvme", p.at+":64MiB"), newLines(t, 5000)
	n.create("d", s, "--ranks", "2", "--batch", "400", "--order", "full")
	listed := sh(t, `cd "$1" && getfattr -d rank-1/batch-000003`, n.path("d"))
	if !strings.Contains(listed, "user.rankfs.records=") || strings.Contains(listed, "checksum") {
		t.Errorf("attributes: %s", listed)
	}
	if fills := n.status().Counters.Fills; fills != 0 {
		t.Errorf("looking at attributes has filled %d batches", fills)
	}
	right := func(where, path string) {
		t.Helper()
		sum, err := checksum(path)
		must(t, err)
		bytes, err := os.ReadFile(path)
		must(t, err)
		if want := fmt.Sprintf("xxh64:%016x", xxhash.Sum64(bytes)); sum != want {
			t.Errorf("%s: %s has the checksum %s, and its bytes %s", where, path, sum, want)
		}
	}
	for step := range 7 {
		for rank := range 2 {
			right("new", n.batch("d", rank, step))
		}
	}
	right("empty", n.batch("d@ranks=32,batch=200", 31, 0))
	right("by a shell", n.batch("d", 0, 0))
	shown := sh(t, `getfattr --only-values -n user.rankfs.checksum "$1"`, n.batch("d", 0, 0))
	if sum, err := checksum(n.batch("d", 0, 0)); err != nil || sum != shown {
		t.Errorf("getfattr shows %q, and the kernel %q, %v", shown, sum, err)
	}
	n.ok("cache", "evict", "d")
	right("given up", n.batch("d", 1, 2))
	n.ok("cache", "pin", "d", "--tier", "nvme")
	n.ok("cache", "policy", "all-disk")
	n.ok("warm", "d")
	right("on a disk", n.batch("d", 1, 4))
	for _, path := range []string{n.path("d"), n.path("d", "rank-0"), n.path("d", "dataset.json"), n.batch("d", 0, 0) + ".idx", n.mount} {
		if sum, err := checksum(path); !errors.Is(err, unix.ENODATA) {
			t.Errorf("%s has the checksum %q, %v", path, sum, err)
		}
	}
	must(t, os.WriteFile(s.path, []byte("another\n"), 0o644))
	if sum, err := checksum(n.batch("d@epoch=5", 0, 0)); !errors.Is(err, unix.ESTALE) {
		t.Errorf("of a source that was changed: %q, %v", sum, err)
	}
}
