package openmaps

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A map in memory is read where it is, as it would be by a system call, and one that cannot be
// read is one that a disk does not give.
func TestMapsInMemoryAreMapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map")
	before := mappings.Load()
	open := func(content string) mapped {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return newMapped(f)
	}
	for _, tt := range []struct {
		at, n int64
		want  string
		err   error
	}{{0, 4, "abcd", nil}, {2, 2, "cd", nil}, {2, 3, "cd", io.EOF}, {4, 1, "", io.EOF}, {9, 1, "", io.EOF}} {
		m := open("abcd")
		if m.bytes == nil {
			t.Fatal("it is not mapped")
		}
		for _, r := range []io.ReaderAt{m.File, &m} {
			b := make([]byte, tt.n)
			if n, err := r.ReadAt(b, tt.at); string(b[:n]) != tt.want || err != tt.err {
				t.Errorf("%T: %d bytes at %d are %q (%v)", r, tt.n, tt.at, b[:n], err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	m := open("abcd")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadAt(make([]byte, 4), 0); !errors.Is(err, unix.EIO) {
		t.Errorf("a map that was emptied: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.ReadAt(make([]byte, 4), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("one that is closed: %v", err)
	}
	mappings.Add(maxMapped)
	m = open("abcd")
	mappings.Add(-maxMapped)
	if m.bytes != nil {
		t.Error("there is no bound")
	}
	m.Close()
	if n := mappings.Load(); n != before {
		t.Errorf("%d mappings are left", n-before)
	}
}

// What is on a disk is read: a fault would have a thread wait for the disk.
func TestMapsOnDiskAreRead(t *testing.T) {
	o := newOpening(t, 1)
	defer o.End()
	m, err := o.Maps.Get(mapName(0), int64(len(mapName(0))), func(name string) (*os.File, *os.File, bool, error) {
		f, table, _, err := o.open(name)
		return f, table, true, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.file.bytes != nil || m.table.bytes != nil {
		t.Error("it is mapped")
	}
	m.holds(t, 0)
	o.Give(m)
}
