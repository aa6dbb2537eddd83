package disks_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

func key(n int) disks.Key { return disks.Key{Series: [16]byte{1, 2, 3}, Rank: 7, Step: uint64(n)} }

// content is what the slab of a key holds, whatever its size.
func content(k disks.Key, size int) []byte {
	b := make([]byte, 0, size+32)
	for i := uint64(0); len(b) < size; i++ {
		b = append(b, k.Series[:]...)
		b = binary.LittleEndian.AppendUint64(b, k.Rank^i<<32)
		b = binary.LittleEndian.AppendUint64(b, k.Step)
	}
	return b[:size]
}

// journal keeps what is logged.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) count(words ...string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
lines:
	for line := range strings.Lines(j.b.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}

// A tier is a tier under test.
type tier struct {
	*disks.Tier
	t   testing.TB
	log journal
}

func start(t testing.TB, c disks.Config) *tier {
	t.Helper()
	k, err := tryStart(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func tryStart(t testing.TB, c disks.Config) (*tier, error) {
	k := &tier{t: t}
	c.Log = slog.New(slog.NewTextHandler(&k.log, nil))
	var err error
	if k.Tier, err = disks.New(c); err != nil {
		return nil, err
	}
	t.Cleanup(func() { k.Close() })
	return k, nil
}

func one(dir string, bytes int64) disks.Config {
	return disks.Config{Dirs: []disks.Dir{{Path: dir, Bytes: bytes}}}
}

func (k *tier) stop() {
	k.t.Helper()
	if err := k.Close(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *tier) put(n, size int) {
	k.t.Helper()
	if err := k.Put(key(n), content(key(n), size), nil); err != nil {
		k.t.Fatalf("put %d: %v", n, err)
	}
}

func (k *tier) putAll(from, to, size int) {
	k.t.Helper()
	for n := from; n < to; n++ {
		k.put(n, size)
	}
}

// fill is put with the slab's file mapped.
func (k *tier) fill(n, size int, may func(disks.Key) bool) error {
	return k.Fill(key(n), int64(size), func(mem []byte) error { copy(mem, content(key(n), size)); return nil }, may)
}

// gotOf is how many there are of the first so many slabs.
func (k *tier) gotOf(most, size int) (there int) {
	k.t.Helper()
	for n := range most {
		if k.got(n, size) {
			there++
		}
	}
	return there
}

// got opens the slab of a key, compares it, and reports whether there was one.
func (k *tier) got(n, size int) bool {
	k.t.Helper()
	s, err := k.Open(key(n))
	if err != nil {
		k.t.Fatalf("open %d: %v", n, err)
	}
	if s == nil {
		return false
	}
	defer s.Release()
	compare(k.t, s, key(n), size)
	return true
}

func (k *tier) hold(n int) *disks.Slab {
	k.t.Helper()
	s, err := k.Open(key(n))
	if err != nil || s == nil {
		k.t.Fatalf("open %d: %v, %v", n, s, err)
	}
	return s
}

// compare reads a slab by a descriptor of its own, to its end.
func compare(t testing.TB, s *disks.Slab, k disks.Key, size int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", s.Fd()))
	if err != nil {
		t.Fatalf("read %v: %v", k, err)
	}
	if !bytes.Equal(b, content(k, size)) {
		t.Fatalf("wrong bytes of %v: %d of them, want %d", k, len(b), size)
	}
}

func (k *tier) stats() disks.Stats { return k.Stats()[0] }

// untilCounted waits until what is counted of the first directory is what is in
// it.
func (k *tier) untilCounted(dir string) {
	k.t.Helper()
	eventually.True(k.t, "all that is on the disk counts", func() bool { return k.stats().Used == diskUsage(k.t, dir) })
}

// untilUsed waits until the first directory is used again.
func (k *tier) untilUsed() {
	k.t.Helper()
	eventually.True(k.t, "it is used again", func() bool { return k.stats().Fault == nil })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func slabs(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.slab")
	must(t, err)
	return names
}

// diskUsage is what the files of a directory take.
func diskUsage(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		var s unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, e.Name()), &s); errors.Is(err, unix.ENOENT) {
			continue // removed since it was listed
		} else {
			must(t, err)
		}
		if !e.IsDir() {
			bytes += s.Blocks * 512
		}
	}
	return bytes
}
