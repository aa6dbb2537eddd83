package warm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/warm"
)

func open(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return f
}

func mapped(t *testing.T, f *os.File) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(maps), f.Name())
}

// Once its page tables are filled in every request gets the mapping, which is
// the file; it goes when it is idle, and at Close.
func TestMapsWhatIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		f := open(t, content)
		w := warm.New(int(f.Fd()), int64(len(content)))
		w.Begin().Done()
		synctest.Wait() // its page tables are filled in aside
		for range 200 {
			r := w.Begin()
			if !bytes.Equal(r.Data, content) {
				t.Fatal("the mapping is not the file")
			}
			r.Done()
		}
		r := w.Begin()
		time.Sleep(time.Hour) // in use: it stays however long that takes
		if !mapped(t, f) || !bytes.Equal(r.Data, content) {
			t.Fatal("the mapping went while it was in use")
		}
		r.Done()
		time.Sleep(time.Hour)
		if mapped(t, f) {
			t.Error("an idle file is still mapped")
		}
		w.Begin().Done()
		w.Close()
		if mapped(t, f) {
			t.Error("a closed file is still mapped")
		}
		if r := w.Begin(); r.Data != nil {
			t.Error("a closed file was mapped again")
		}
	})
}

// What is not in the page cache is never mapped: a fault on it would stop more
// than its reader.
func TestReadsWhatIsNotCached(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "dropped": 8 << 20} {
		t.Run(name, func(t *testing.T) {
			f := open(t, make([]byte, size))
			if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
			w := warm.New(int(f.Fd()), int64(size))
			defer w.Close()
			for range 100 {
				r := w.Begin()
				if r.Data != nil {
					t.Fatal("mapped")
				}
				r.Done()
			}
		})
	}
}

func TestConcurrent(t *testing.T) {
	content := bytes.Repeat([]byte{7}, 1<<20)
	f := open(t, content)
	w := warm.New(int(f.Fd()), int64(len(content)))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				r := w.Begin()
				if r.Data != nil && r.Data[i*1000] != 7 {
					t.Error("wrong byte")
				}
				r.Done()
			}
		})
	}
	all.Wait()
	w.Close()
	if mapped(t, f) {
		t.Error("still mapped")
	}
}
