package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/local"
	"rankfs/meta"
	"rankfs/test/sourcetest"
)

func attach(t testing.TB, src fetch.Source, err error) sourcetest.Dataset {
	t.Helper()
	return sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) { return src, err }})
}

func write(t testing.TB, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func records(t *testing.T, d sourcetest.Dataset) (all []string) {
	t.Helper()
	for i := range d.Records() {
		dst := make([]byte, d.Size(i))
		if err := d.Read(t.Context(), []index.Extent{d.Extent(i)}, dst); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(dst))
	}
	return all
}

func TestLines(t *testing.T) {
	tests := []struct {
		name, content string
		records       []string
	}{
		{"none", "", nil},
		{"one", "a\n", []string{"a\n"}},
		{"no terminator", "a\nb", []string{"a\n", "b"}},
		{"empty lines", "\n\na\n\n", []string{"\n", "\n", "a\n", "\n"}},
		{"CRLF", "a\r\nb\rc\n\r\n", []string{"a\r\n", "b\rc\n", "\r\n"}},
		{"no text", "\x00\xff\n\xfe", []string{"\x00\xff\n", "\xfe"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := local.OpenLines(write(t, test.content))
			d := attach(t, src, err)
			if got := records(t, d); !reflect.DeepEqual(got, test.records) {
				t.Errorf("got %q, want %q", got, test.records)
			}
		})
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbc\r\n\n\nd"), uint8(2))
	f.Add([]byte("\n"), uint8(1))
	f.Fuzz(func(t *testing.T, content []byte, size uint8) {
		var want, got [][]byte
		for line := range bytes.Lines(content) {
			want = append(want, line)
		}
		next := int64(0)
		buf := make([]byte, max(1, size))
		err := local.EachLine(bytes.NewReader(content), int64(len(content)), buf, func(off, n int64) error {
			if off != next {
				t.Fatalf("a line begins at %d, want %d", off, next)
			}
			next = off + n
			got = append(got, content[off:next])
			return nil
		})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

func TestFixed(t *testing.T) {
	tests := []struct {
		name, content string
		n             int64
		records       []string
		remainder     string
	}{
		{"none", "", 3, nil, ""},
		{"exact", "abcdef", 3, []string{"abc", "def"}, ""},
		{"remainder", "abcdefgh", 3, []string{"abc", "def"}, "the last 2 bytes of the file are in no record: they do not fill one of 3"},
		{"too long", "ab", 3, nil, "the last 2 bytes of the file are in no record: they do not fill one of 3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := local.OpenFixed(write(t, test.content), test.n)
			d := attach(t, src, err)
			if got := records(t, d); !reflect.DeepEqual(got, test.records) {
				t.Errorf("got %q, want %q", got, test.records)
			}
			if got := d.Notes()["remainder"]; got != test.remainder {
				t.Errorf("note %q, want %q", got, test.remainder)
			}
		})
	}
}

// Nothing that is no record takes room, however large the file is.
func TestChunks(t *testing.T) {
	const n, whole = 1 << 10, 3*local.ChunkBytes + 5<<20
	path := write(t, "")
	if err := os.Truncate(path, whole); err != nil {
		t.Fatal(err)
	}
	long := func() (*local.File, error) { return local.OpenLines(path) }
	fixed := func() (*local.File, error) { return local.OpenFixed(path, n) }
	tests := []struct {
		name   string
		open   func() (*local.File, error)
		chunks []int64
	}{
		{"pieces", fixed, []int64{local.ChunkBytes, local.ChunkBytes, local.ChunkBytes, 5 << 20}},
		{"one long line", long, []int64{whole}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := test.open()
			d := attach(t, src, err)
			var chunks []int64
			for i := range d.Chunks() {
				chunks = append(chunks, d.Chunk(i).Bytes)
			}
			if !reflect.DeepEqual(chunks, test.chunks) {
				t.Errorf("chunks of %v bytes, want %v", chunks, test.chunks)
			}
			if d.FileBytes() > 2048 {
				t.Errorf("the index has %d bytes", d.FileBytes())
			}
		})
	}
}

// What changes while it is scanned has no version.
func TestScanNoticesChange(t *testing.T) {
	file := write(t, "one\ntwo\n")
	lines, err := local.OpenLines(file)
	if err != nil {
		t.Fatal(err)
	}
	inTree := write(t, "one")
	tree, err := local.OpenTree(filepath.Dir(inTree))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		src        fetch.Source
		change     func(path string) error
	}{
		{"a file grows", file, lines, func(path string) error { return os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0) }},
		{"a file shrinks", file, lines, func(path string) error { return os.Truncate(path, 3) }},
		{"a file of a tree grows", inTree, tree, func(path string) error { return os.WriteFile(path, []byte("longer"), 0) }},
		{"a tree gets a file", inTree, tree, func(path string) error { return os.WriteFile(path+"2", nil, 0o600) }},
		{"a file goes", file, lines, os.Remove},
		{"a tree goes", filepath.Dir(inTree), tree, os.RemoveAll},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, once := t.TempDir(), false
			err := fetch.Build(t.Context(), test.src, filepath.Join(dir, "index"), func(int64, int64, uint64) {
				if !once {
					once = true
					if err := test.change(test.path); err != nil {
						t.Error(err)
					}
				}
			})
			if !errors.Is(err, meta.ErrStale) {
				t.Errorf("got %v, want ErrStale", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// A read under which the file is cut short and written again in a loop gives
// the bytes that were indexed or none.
func TestChangesUnderRead(t *testing.T) {
	const size = 1 << 20
	want := bytes.Repeat([]byte("x"), size)
	for round := range 20 {
		path := write(t, string(want))
		file, err := local.OpenWhole(path)
		inFile := attach(t, file, err)
		tree, err := local.OpenTree(filepath.Dir(path))
		inTree := attach(t, tree, err)
		changed := make(chan error)
		begin := make(chan bool)
		go func() {
			<-begin
			err := os.Truncate(path, int64(round)<<10)
			changed <- errors.Join(err, os.WriteFile(path, bytes.Repeat([]byte("y"), size), 0))
		}()
		dst := make([]byte, size)
		for tries := 0; ; tries++ {
			if tries == 2 {
				close(begin)
			}
			d := []sourcetest.Dataset{inFile, inTree}[tries%2]
			err := d.Read(t.Context(), d.Extents(0, 1), dst)
			if errors.Is(err, meta.ErrStale) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst, want) {
				t.Fatal("bytes of another version")
			}
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestDescriptorLimit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := local.OpenTree(dir)
	d := attach(t, src, err)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	// Every number below the limit is taken: the limit is the next one.
	probe, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(probe)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(probe), Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	_, openErr := local.OpenLines(filepath.Join(dir, "file"))
	readErr := d.Read(t.Context(), d.Extents(0, 1), make([]byte, 1))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"open": openErr, "read": readErr} {
		if !errors.Is(err, unix.EMFILE) || errors.Is(err, meta.ErrStale) || !strings.Contains(err.Error(), fmt.Sprint("the limit is ", probe)) {
			t.Errorf("%s: got %v, want EMFILE and the limit", name, err)
		}
	}
	if got := records(t, d); len(got) != 1 {
		t.Error("the file is not read once there are descriptors again")
	}
}

func BenchmarkScanLines(b *testing.B) {
	for _, length := range []int{20, 100, 1000, 100_000} {
		b.Run(fmt.Sprint("length=", length), func(b *testing.B) {
			const size = 256 << 20
			line := strings.Repeat("x", length-1) + "\n"
			src, err := local.OpenLines(write(b, strings.Repeat(line, size/length)))
			if err != nil {
				b.Fatal(err)
			}
			path := filepath.Join(b.TempDir(), "index")
			b.SetBytes(size)
			for b.Loop() {
				w, err := index.Create(path)
				if err == nil {
					_, err = src.Scan(context.Background(), w, func(int64, int64) {})
					w.Abort()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bothOf are a file of so many bytes, and the tree that has it alone.
func bothOf(b *testing.B, size int) map[string]fetch.Source {
	b.Helper()
	path := write(b, strings.Repeat("x", size))
	whole, err := local.OpenWhole(path)
	if err != nil {
		b.Fatal(err)
	}
	tree, err := local.OpenTree(filepath.Dir(path))
	if err != nil {
		b.Fatal(err)
	}
	return map[string]fetch.Source{"file": whole, "tree": tree}
}

func BenchmarkRead(b *testing.B) {
	const size = 256 << 20
	for name, src := range bothOf(b, size) {
		d := attach(b, src, nil)
		for _, n := range []int64{4 << 10, 128 << 10, 8 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%s/size=%d", name, n), func(b *testing.B) {
				dst := make([]byte, n)
				off := int64(0)
				b.SetBytes(n)
				for b.Loop() {
					if err := d.Read(context.Background(), []index.Extent{{Off: off, Len: n}}, dst); err != nil {
						b.Fatal(err)
					}
					off = (off + n) % size
				}
			})
		}
	}
}

// A batch of a shuffled epoch: records from all over the file.
func BenchmarkReadScattered(b *testing.B) {
	const size = 1 << 30
	for name, src := range bothOf(b, size) {
		d := attach(b, src, nil)
		for _, n := range []int64{100, 4 << 10, 16 << 10, 128 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/record=%d", name, n), func(b *testing.B) {
				const batch = 256
				dst := make([]byte, batch*n)
				extents := make([]index.Extent, batch)
				r := rand.New(rand.NewPCG(1, 1))
				b.SetBytes(batch * n)
				for b.Loop() {
					for i := range extents {
						extents[i] = index.Extent{Off: r.Int64N(size - n), Len: n}
					}
					if err := d.Read(context.Background(), extents, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
