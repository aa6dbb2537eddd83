package sequence_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch/sequence"
	"rankfs/meta"
)

// Whatever the file, the answer is values that are where they were said to
// be, or an error that a caller knows.
func FuzzSplit(f *testing.F) {
	for _, format := range formats(60, 1) {
		w := write(f, format, someValues(10, 30))
		f.Add(w.data, int64(0), int64(len(w.data)))
		f.Add(w.data, w.header+1, int64(len(w.data)))
	}
	names, err := filepath.Glob("testdata/*.seq")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, int64(0), int64(len(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte, from, to int64) {
		h, err := sequence.ReadHeader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			known(t, err)
			return
		}
		from, to = max(0, from), max(0, to)
		fuzzSplit(t, h, data, from, to)
	})
}

func fuzzSplit(t *testing.T, h sequence.Header, data []byte, from, to int64) {
	const most = 1 << 20
	var total, count int64
	errMost := errors.New("much")
	p := split(h, data, from, to)
	err := p.Scan(t.Context(), func(off, n int64) error {
		if n < 0 || off >= 0 && (off < h.Length || n > int64(len(data))-off) {
			t.Fatalf("a value of %d bytes at %d", n, off)
		}
		if total, count = total+n, count+1; total > most || count > most {
			return errMost
		}
		return nil
	})
	if p.Offset() < 0 || p.Offset() > max(from, int64(len(data))) {
		t.Fatalf("%d bytes were read of %d", p.Offset(), len(data))
	}
	if err != nil && err != errMost {
		known(t, err)
	}
	dst := make([]byte, min(total, most))
	switch again := split(h, data, from, to).Copy(t.Context(), dst); {
	case again != nil:
		known(t, again)
	case err != nil:
		t.Fatalf("copied what was not to be scanned: %v", err)
	}
}

func known(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, meta.ErrCorrupt) && !errors.Is(err, meta.ErrInvalid) && !errors.Is(err, meta.ErrStale) {
		t.Fatalf("an error of no kind: %v", err)
	}
}
