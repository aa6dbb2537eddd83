package catalog

import (
	"os"
	"path/filepath"
	"testing"
)

func newIndexes(t *testing.T) *indexes {
	t.Helper()
	x, err := openIndexes(filepath.Join(t.TempDir(), "indexes"))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// make is a file to take in.
func (x *indexes) make(t *testing.T, text string) (path string) {
	t.Helper()
	path, err := x.create()
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// An index is kept until it was released as often as it was added.
func TestAddedIndexesAreKept(t *testing.T) {
	x := newIndexes(t)
	const times = 3
	var hash string
	for range times {
		var size int64
		var err error
		if hash, size, err = x.add(x.make(t, "a")); err != nil || size != 1 || !x.has(hash) {
			t.Fatalf("%s of %d bytes: %v", hash, size, err)
		}
	}
	for released := range times + 1 {
		if err := x.keep(nil); err != nil {
			t.Fatal(err)
		}
		if x.has(hash) != (released < times) {
			t.Errorf("after %d of %d were released it is there: %v", released, times, x.has(hash))
		}
		x.release(hash)
	}
}

// An index that could not be added belongs to no dataset: another that has its name later is
// not kept for it.
func TestIndexThatIsNotAdded(t *testing.T) {
	x := newIndexes(t)
	hash, _, err := x.add(x.make(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	x.release(hash)
	if err := x.keep(nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(x.path(hash), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.add(x.make(t, "a")); err == nil {
		t.Fatal("it is in the place of a directory")
	}
	if err := x.keep(nil); err != nil || x.has(hash) {
		t.Errorf("what could not be taken in is kept (%v)", err)
	}
}
