package kept

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// For which registration of a name something is kept is known after a restart, and of a
// file that is damaged nothing is.
func TestRegistrations(t *testing.T) {
	dir, at := t.TempDir(), time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	open := func() *registrations {
		r := new(registrations)
		if err := r.open(dir); err != nil {
			t.Fatal(err)
		}
		return r
	}
	set := func(r *registrations, dataset string, at time.Time) {
		t.Helper()
		if err := r.set(dataset, at); err != nil {
			t.Fatal(err)
		}
	}
	r := open()
	set(r, "d", at)
	set(r, "e", at)
	set(r, "e", at.Add(1))
	set(r, "f", at)
	set(r, "f", time.Time{})
	r = open()
	if d, known := r.find("d"); !known || !d.Equal(at) {
		t.Errorf("d was registered %v", d)
	}
	if e, known := r.find("e"); !known || !e.Equal(at.Add(1)) {
		t.Errorf("e was registered %v", e)
	}
	if f, known := r.find("f"); known {
		t.Errorf("f, for which nothing is kept, was registered %v", f)
	}
	for _, text := range []string{"", "null", `{"d":"yesterday"}`, `{"d":`} {
		if err := os.WriteFile(filepath.Join(dir, "kept"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r = open()
		if d, known := r.find("d"); known {
			t.Errorf("of %q it is taken that d was registered %v", text, d)
		}
		set(r, "d", at)
	}
}
