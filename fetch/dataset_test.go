package fetch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A fake source has one record of 4 bytes and does as it is told.
type fake struct {
	read     func(dst []byte) error
	scan     func(b *index.Builder) error
	checked  int
	attached error
	closed   int
}

func (f *fake) Fingerprint(context.Context) (string, error) { return "v1", nil }

func (f *fake) Scan(_ context.Context, b *index.Builder, done func(bytes, total int64)) (string, error) {
	if f.scan != nil {
		return "", f.scan(b)
	}
	b.AddFile(index.File{Size: 4})
	done(4, 4)
	return "v1", b.Add(index.Extent{Len: 4})
}

func (f *fake) Attach(context.Context, *index.Index, string) error { return f.attached }
func (f *fake) Check(context.Context) error                        { f.checked++; return nil }
func (f *fake) Close() error                                       { f.closed++; return nil }

func (f *fake) Read(_ context.Context, _ []index.Extent, dst []byte) error { return f.read(dst) }

var record = []index.Extent{{Len: 4}}

func attach(t *testing.T, src fetch.Source) *fetch.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := fetch.Attach(t.Context(), src, x)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// mapped maps a file that has bytes for size and is then cut to nothing.
func mapped(t *testing.T, size int) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFaults(t *testing.T) {
	gone := mapped(t, 1<<16)
	boom := errors.New("boom")
	tests := []struct {
		name string
		dst  []byte
		read func(dst []byte) error
		is   error
	}{
		{"source cut short", make([]byte, 4), func(dst []byte) error { copy(dst, gone); return nil }, meta.ErrStale},
		{"source cut short, byte by byte", make([]byte, 4), func(dst []byte) error { dst[0] = gone[9999]; return nil }, meta.ErrStale},
		{"no room for dst", gone[8190:8194], func(dst []byte) error { copy(dst, "data"); return nil }, meta.ErrNoSpace},
		{"no room, by the kernel", gone[:4], func(dst []byte) error {
			zero, err := os.Open("/dev/zero")
			if err != nil {
				return err
			}
			defer zero.Close()
			_, err = unix.Read(int(zero.Fd()), dst)
			return err
		}, meta.ErrNoSpace},
		{"an error stays", make([]byte, 4), func([]byte) error { return boom }, boom},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := attach(t, &fake{read: test.read})
			if err := d.Read(t.Context(), record, test.dst); !errors.Is(err, test.is) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			if debug.SetPanicOnFault(false) {
				t.Error("faults go on to panic")
			}
		})
	}
}

func TestOtherPanicsPass(t *testing.T) {
	var nothing *[4]byte
	for name, panics := range map[string]func(dst []byte) error{
		"plain":       func([]byte) error { panic("boom") },
		"bounds":      func(dst []byte) error { dst[len(dst)] = 0; return nil },
		"nil pointer": func(dst []byte) error { dst[0] = nothing[1]; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := attach(t, &fake{read: panics})
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
				if err := d.Close(); err != nil { // hangs if the read still counts
					t.Error(err)
				}
			}()
			d.Read(t.Context(), record, make([]byte, 4))
		})
	}
}

func TestCloseWaits(t *testing.T) {
	begun, finish := make(chan bool), make(chan bool)
	src := &fake{}
	src.read = func([]byte) error {
		close(begun)
		<-finish
		if src.closed > 0 {
			t.Error("closed under a read")
		}
		return nil
	}
	d := attach(t, src)
	read, closed := make(chan error), make(chan error)
	go func() { read <- d.Read(t.Context(), record, make([]byte, 4)) }()
	<-begun
	go func() { closed <- d.Close() }()
	for d.Check(t.Context()) == nil { // until Close has begun
	}
	if err := d.Read(t.Context(), record, make([]byte, 4)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read while closing: got %v, want ErrClosed", err)
	}
	close(finish)
	if err := errors.Join(<-read, <-closed, d.Close()); err != nil {
		t.Error(err)
	}
	if src.closed != 1 {
		t.Errorf("the source was closed %d times", src.closed)
	}
}

func TestAttachFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	src := &fake{attached: meta.ErrStale}
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := fetch.Attach(t.Context(), src, x); !errors.Is(err, meta.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	if src.closed != 0 || x.Records() != 1 {
		t.Error("the source or the index was closed")
	}
}

func TestBuildFails(t *testing.T) {
	gone := mapped(t, 1<<16)
	boom := errors.New("boom")
	tests := []struct {
		name string
		scan func(b *index.Builder) error
		is   error
	}{
		{"error", func(b *index.Builder) error { b.AddFile(index.File{}); return boom }, boom},
		{"fault", func(b *index.Builder) error { return b.Add(index.Extent{Len: int64(gone[0])}) }, meta.ErrStale},
		{"ignored error of the builder", func(b *index.Builder) error { b.Add(index.Extent{}); return nil }, meta.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			err := fetch.Build(t.Context(), &fake{scan: test.scan}, filepath.Join(dir, "index"), nil)
			if !errors.Is(err, test.is) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
