package meta_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rankfs/meta"
)

// Only the last directory of a path is made: what is above it may be on a disk that is not
// mounted yet.
func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := meta.MakeDir(dir + "/one/"); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir + "/one"); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("made: %v, %v", info, err)
	}
	err := meta.MakeDir(dir + "/disk/rankfs")
	if want := dir + "/disk does not exist: mount its disk first, or make it with: mkdir -p " + dir + "/disk"; !errors.Is(err, meta.ErrNotExist) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := os.Stat(dir + "/disk"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is above it was made: %v", err)
	}
	if err := meta.MakeDir(file + "/one"); err == nil || !strings.Contains(err.Error(), "not a directory; name a directory that") {
		t.Errorf("below a file: %v", err)
	}
}

// There are no names in a directory that is not there, and none can be told of what is no
// directory.
func TestNamesIn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"full", "full/a", "full/b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	names, err := meta.NamesIn(root, "full")
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("there are %q: %v", names, err)
	}
	if names, err := meta.NamesIn(root, "none"); err != nil || len(names) > 0 {
		t.Errorf("of none there are %q: %v", names, err)
	}
	if _, err := meta.NamesIn(root, "file"); err == nil {
		t.Error("a file has names")
	}
}
