package mapfiles

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pieces"
)

// A map that has moved to the disk, or was given up, or whose stage is gone, keeps no memory
// because a reader had it open a moment ago; from the disk it is read as before.
func TestWhatHasGoneIsNotOpen(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 4096)
	for what, goes := range map[string]func(f *Files, name string, c state.Commit) error{
		"moved": func(f *Files, _ string, c state.Commit) error {
			return f.MoveToDisk(t.Context(), 9, c)
		},
		"given up": func(f *Files, name string, _ state.Commit) error { f.Drop(name); return nil },
		"removed":  func(f *Files, _ string, _ state.Commit) error { f.memory.RemoveAll("9"); return nil },
	} {
		f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
		name, c, all := mapOfBytes(t, text)
		if err := f.memory.put(t.Context(), name, all, strings.NewReader(text), false); err != nil {
			t.Fatal(err)
		}
		m, err := f.open.Get(name, c.Size, f.openMap)
		if err != nil {
			t.Fatal(err)
		}
		f.open.Give(m)
		if err := goes(f, name, c); err != nil {
			t.Fatal(err)
		}
		_, err = m.ReadAt(make([]byte, 1), 0)
		_, late := m.ReadTable(make([]byte, 1), 0)
		if !errors.Is(err, os.ErrClosed) || !errors.Is(late, os.ErrClosed) {
			t.Errorf("one that was %s is open: %v, %v", what, err, late)
		}
		if _, err := f.memory.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("one that was %s is in memory: %v", what, err)
		}
		if _, err := f.open.Get(name, c.Size, f.openMap); (err == nil) != (what == "moved") {
			t.Errorf("one that was %s: %v", what, err)
		}
		f.open.End()
	}
}

// What a daemon that was killed has left of a table is in the way of none.
func TestTableThatWasNotFinished(t *testing.T) {
	f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
	name, c, all := mapOfBytes(t, "0123456789abcdef")
	memory := f.memory
	if err := errors.Join(memory.put(t.Context(), name, all, strings.NewReader("0123456789abcdef"), false), os.WriteFile(memory.Path(name+Idx), all[:5], 0600)); err != nil {
		t.Fatal(err)
	}
	if err := memory.placeTable(name+Idx, int64(len(all)), strings.NewReader(string(all))); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(9, c); err != nil {
		t.Error(err)
	}
	f.open.End()
}

// Of a map that has some of its bytes behind its table all is read and checked as if it were
// one file; it has moved to the disk as one.
func TestMapsInTwoFiles(t *testing.T) {
	const text, after = "what was written", "what comes after it"
	var all pieces.Table
	for _, piece := range []string{text[:4], text[4:], after} {
		end := int64(len(piece))
		if len(all) > 0 {
			end += all.Size()
		}
		all = pieces.AppendRow(all, end, xxhash.Sum64String(piece))
	}
	f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
	c := state.Commit{Map: 3, Writer: "00000000000000bb", Size: int64(len(text + after)), Sum: all.Sum()}
	name := Path(9, c)
	if err := f.memory.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]string{name: text, name + Idx: string(all) + after} {
		if err := os.WriteFile(f.memory.Path(name), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Verify(9, c); err != nil || f.Lacks(t.Context(), 9, c) {
		t.Errorf("%v; is it there? %v", err, !f.Lacks(t.Context(), 9, c))
	}
	holds := func() {
		t.Helper()
		m, err := f.open.Get(name, c.Size, f.openMap)
		if err != nil {
			t.Fatal(err)
		}
		defer f.open.Give(m)
		for off := range c.Size + 2 {
			for n := range c.Size + 2 - off {
				b := make([]byte, n)
				got, err := m.ReadAt(b, off)
				want := (text + after)[min(off, c.Size):min(off+n, c.Size)]
				if string(b[:got]) != want || (err == nil) != (got == len(b)) && err != io.EOF {
					t.Fatalf("%d bytes at %d are %q, want %q: %v", n, off, b[:got], want, err)
				}
			}
		}
	}
	holds()
	for part, want := range []string{text[:4], text[4:], after} {
		one, err := f.find(Part{Stage: 9, Number: uint64(part)}, c)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, one.Length())
		if err := one.Read(b); err != nil || string(b) != want {
			t.Errorf("part %d is %q, want %q: %v", part, b, want, err)
		}
		if b := one.InMemory(); string(b) != want {
			t.Errorf("part %d is %q where it is mapped, want %q", part, b, want)
		}
		f.open.Give(one.Map)
	}
	if file, err := f.Whole(9, c); file != nil || err != nil {
		t.Errorf("it is one file: %v", err)
	}
	if err := f.MoveToDisk(t.Context(), 9, c); err != nil {
		t.Fatal(err)
	}
	holds()
	file, err := f.Whole(9, c)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file.Name()); err != nil || string(b) != text+after {
		t.Errorf("on the disk it is %q: %v", b, err)
	}
	file.Close()
	f.Drop(name)
	for _, cut := range [][2]string{{text[:5], string(all) + after}, {text, string(all) + after[1:]}, {text, string(all)}, {text, after[1:]}, {"", ""}, {text + after + "x", string(all)}} {
		for i, name := range []string{name, name + Idx} {
			if err := os.WriteFile(f.memory.Path(name), []byte(cut[i]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Verify(9, c); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("files that have %q: %v", cut, err)
		}
		f.forget(name)
	}
}
