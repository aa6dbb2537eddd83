package local_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/local"
	"rankfs/meta"
	"rankfs/test/sourcetest"
)

func TestTreeLeavesOut(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	err = errors.Join(
		os.WriteFile(at("file"), []byte("x"), 0o600),
		os.Symlink("file", at("link")),
		os.Symlink("..", at("up")),
		os.Symlink("nowhere", at("dangling")),
		unix.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("empty"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	src, err := local.OpenTree(dir)
	d := attach(t, src, err)
	if got := records(t, d); !reflect.DeepEqual(got, []string{"x"}) {
		t.Errorf("records %q", got)
	}
	const want = "not served nor followed: fifos: 1, sockets: 1, symbolic links: 3"
	if got := d.Notes()["left out"]; got != want {
		t.Errorf("note %q, want %q", got, want)
	}
}

// A tree with LMDBs in it is read as files, however many there are, and a note says of
// one what would read its values.
func TestTreeWithAnLMDB(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "train"), 0o700),
		os.WriteFile(filepath.Join(dir, "train", "data.mdb"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, "train", "lock.mdb"), []byte("y"), 0o600),
	)
	const more = 8000 // a note for each would be more than an index takes
	for i := range more {
		shard := filepath.Join(dir, fmt.Sprintf("val-%06d", i))
		err = errors.Join(err, os.Mkdir(shard, 0o700), os.WriteFile(filepath.Join(shard, "data.mdb"), nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	src, err := local.OpenTree(dir)
	d := attach(t, src, err)
	if got := records(t, d); len(got) != 2+more || !reflect.DeepEqual(got[:2], []string{"x", "y"}) {
		t.Errorf("%d records, the first %q", len(got), got[:min(2, len(got))])
	}
	want := "train/data.mdb is a record as a whole; to read the values in it create the dataset from lmdb:" + dir + "/train"
	if got := d.Notes()["lmdb"]; got != want {
		t.Errorf("note %q, want %q", got, want)
	}
}

// Once a read or a check has found that a file or a directory is not what it was, every check
// finds so: of many files, in many directories, though it looks at a few.
func TestTreeStaysChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(dir string) error
		found  func(d sourcetest.Dataset) error
	}{
		{"a file is rewritten", func(dir string) error {
			return os.WriteFile(dir+"/120/f", []byte("other"), 0o600)
		}, func(d sourcetest.Dataset) error {
			return d.Read(t.Context(), []index.Extent{d.Extent(119), d.Extent(120)}, make([]byte, 10))
		}},
		{"a directory gets a file", func(dir string) error {
			return os.WriteFile(dir+"/120/g", []byte("more"), 0o600)
		}, func(d sourcetest.Dataset) (err error) {
			for range 8 { // each looks at 64 of them
				err = errors.Join(err, d.Check(t.Context()))
			}
			return err
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for i := range 300 {
				if err := errors.Join(os.Mkdir(fmt.Sprintf("%s/%03d", dir, i), 0o700), os.WriteFile(fmt.Sprintf("%s/%03d/f", dir, i), []byte("bytes"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			src, err := local.OpenTree(dir)
			d := attach(t, src, err)
			if err := d.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			if err := test.found(d); !errors.Is(err, meta.ErrStale) {
				t.Fatalf("the change is not found: %v", err)
			}
			for range 20 {
				if err := d.Check(t.Context()); !errors.Is(err, meta.ErrStale) {
					t.Fatalf("a later check: %v, want ErrStale", err)
				}
			}
		})
	}
}

// Of a large tree few files are open at a time, and the names are kept as
// they are.
func TestTreeDescriptors(t *testing.T) {
	dir := t.TempDir()
	const files = 3 * local.KeptOpen
	for i := range files {
		name := fmt.Sprintf("%03d\n\xff", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := local.OpenTree(dir)
	d := attach(t, src, err)
	before := descriptors(t)
	for i, got := range records(t, d) {
		if want := fmt.Sprintf("%03d\n\xff", i); got != want || d.File(uint32(i)).Path != want {
			t.Fatalf("record %d is %q of %q, want %q", i, got, d.File(uint32(i)).Path, want)
		}
	}
	if got := descriptors(t) - before; got != local.KeptOpen {
		t.Errorf("%d files stay open, want %d", got, local.KeptOpen)
	}
}

// Check goes round: what one call does not look at a later one does.
func TestCheckGoesRound(t *testing.T) {
	dir := t.TempDir()
	const dirs = 200
	for i := range dirs {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("%03d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	src, err := local.OpenTree(dir)
	d := attach(t, src, err)
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "020", "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		err = errors.Join(err, d.Check(t.Context()))
	}
	if !errors.Is(err, meta.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
}
