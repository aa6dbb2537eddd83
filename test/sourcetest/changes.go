package sourcetest

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
	"rankfs/test/eventually"
)

func stable(t *testing.T, f Fixture) {
	d := Attach(t, f)
	want(t, d, f, 0, min(d.Records(), 100))
	src := open(t, f)
	defer src.Close()
	for range 3 {
		now, err := src.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if now != d.Fingerprint() {
			t.Fatalf("fingerprint %q, was %q when scanned", now, d.Fingerprint())
		}
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// changed applies change i to the fixture while it is attached.
func changed(t *testing.T, f Fixture, i int) {
	change := f.Changes[i]
	path := filepath.Join(t.TempDir(), "index")
	d := attach(t, f, path)
	defer d.Close()
	want(t, d, f, 0, min(d.Records(), 100)) // so that files are open and pages mapped
	if err := change.Do(); err != nil {
		t.Fatal(err)
	}
	seen := d.Check(t.Context())
	if !change.Unseen && !change.Late && !errors.Is(seen, meta.ErrStale) {
		t.Errorf("Check: got %v, want ErrStale", seen)
	}
	for record := range d.Records() {
		got, err := read(d, record, 1)
		switch {
		case errors.Is(err, meta.ErrStale):
			seen = err
		case err != nil:
			t.Errorf("record %d: got %v, want ErrStale", record, err)
		case !bytes.Equal(got, f.Records[record]):
			t.Errorf("record %d has bytes of another version", record)
		}
	}
	if change.Late { // whatever Read has noticed meanwhile
		eventually.True(t, "Check finds the change", func() bool { seen = d.Check(t.Context()); return seen != nil })
		if !errors.Is(seen, meta.ErrStale) {
			t.Errorf("Check: got %v, want ErrStale", seen)
		}
	}
	if seen == nil {
		t.Error("neither Check nor Read noticed")
	}
	attachChanged(t, f, path)
}

// attachChanged makes sure that the source no longer fits its index.
func attachChanged(t *testing.T, f Fixture, path string) {
	src, err := f.Open()
	if err != nil {
		return // gone, or no longer what can be opened at all
	}
	defer src.Close()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if now, err := src.Fingerprint(t.Context()); err == nil && now == x.Fingerprint() {
		t.Error("the fingerprint is the same")
	}
	if _, err := fetch.Attach(t.Context(), src, x); !errors.Is(err, meta.ErrStale) {
		t.Errorf("Attach: got %v, want ErrStale", err)
	}
}
