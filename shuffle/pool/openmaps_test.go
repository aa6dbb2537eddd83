package pool

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/pieces"
)

// An opening has maps whose files have their names as content, and counts how often one is
// opened, with its table.
type opening struct {
	openMaps
	dir      string
	counting sync.Mutex
	n        int
}

func newOpening(t *testing.T, maps int) *opening {
	t.Helper()
	dir := t.TempDir()
	for i := range maps {
		for _, name := range []string{mapName(i), mapName(i) + idx} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &opening{dir: dir}
}

func (o *opening) open(name string) (file, table *os.File, onDisk bool, err error) {
	o.counting.Lock()
	defer o.counting.Unlock()
	o.n++
	if file, err = os.Open(filepath.Join(o.dir, name)); err != nil {
		return nil, nil, false, err
	}
	table, err = os.Open(filepath.Join(o.dir, name+idx))
	return file, table, false, err
}

// get opens a map of which all is in its file.
func (o *opening) get(i int) (*openedMap, error) {
	return o.openMaps.get(mapName(i), int64(len(mapName(i))), o.open)
}

func (o *opening) opens() int {
	o.counting.Lock()
	defer o.counting.Unlock()
	return o.n
}

func mapName(i int) string { return fmt.Sprintf("7/maps/%06d", i) }

// holds reads a map that is open.
func (m *openedMap) holds(t *testing.T, i int) {
	t.Helper()
	b := make([]byte, len(mapName(i)))
	if _, err := m.ReadAt(b, 0); err != nil || string(b) != mapName(i) {
		t.Errorf("map %d has %q (%v)", i, b, err)
	}
}

// reads has a map read once.
func (o *opening) reads(t *testing.T, i int) *openedMap {
	t.Helper()
	m, err := o.get(i)
	if err != nil {
		t.Fatal(err)
	}
	m.holds(t, i)
	o.give(m)
	return m
}

func (m *openedMap) closed() bool {
	_, err := m.File.Stat()
	_, late := m.table.File.Stat()
	return err != nil && late != nil
}

// A map and its table are opened once for all parts that are read.
func TestMapsAreOpenedOnce(t *testing.T) {
	o := newOpening(t, 8)
	synctest.Test(t, func(t *testing.T) {
		defer o.end()
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				for i := range 8 {
					o.reads(t, i)
				}
			})
			readers.Wait()
		}
		if n := o.opens(); n != 8 {
			t.Errorf("8 maps and their tables were opened %d times", n)
		}
		if _, err := o.get(8); !os.IsNotExist(err) {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

// A map that was given up is closed once nobody reads it, and one that comes in its place
// is another.
func TestMapsThatAreGivenUpAreClosed(t *testing.T) {
	o := newOpening(t, 3)
	synctest.Test(t, func(t *testing.T) {
		first, second := o.reads(t, 0), o.reads(t, 1)
		third, err := o.get(2)
		if err != nil {
			t.Fatal(err)
		}
		o.one(mapName(0))
		if !first.closed() || second.closed() {
			t.Error("one is open still, or the other is not")
		}
		o.below("7")
		if !second.closed() || third.closed() {
			t.Error("one is open still, or one that is read is not")
		}
		third.holds(t, 2)
		before := o.opens()
		if again := o.reads(t, 2); again == third || o.opens() != before+1 {
			t.Error("what was given up is read again")
		}
		o.give(third)
		if !third.closed() {
			t.Error("it is open though nobody reads it")
		}
		o.end()
		if last := o.reads(t, 1); !last.closed() {
			t.Error("a job that has ended keeps a map open")
		}
	})
}

// Nobody has to say so: a map that was not read for a while is closed.
func TestMapsThatNobodyReadsAreClosed(t *testing.T) {
	o := newOpening(t, 2)
	synctest.Test(t, func(t *testing.T) {
		idle := o.reads(t, 0)
		for range 10 {
			time.Sleep(openedTime / 2)
			o.reads(t, 1)
		}
		if !idle.closed() {
			t.Error("one that is not read is open")
		}
		if n := o.opens(); n != 2 {
			t.Errorf("one that is read was opened anew: %d", n)
		}
		busy, err := o.get(1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * openedTime)
		busy.holds(t, 1)
		o.give(busy)
		time.Sleep(3 * openedTime)
		if !busy.closed() {
			t.Error("it is open though nobody reads it")
		}
	})
}

// However many maps there are, not all of them are open, and all can be read.
func TestNotAllMapsAreOpen(t *testing.T) {
	o := newOpening(t, mostOpened+10)
	synctest.Test(t, func(t *testing.T) {
		defer o.end()
		open := 0
		for i := range mostOpened + 10 {
			if m := o.reads(t, i); !m.closed() {
				open++
			}
		}
		if open != mostOpened {
			t.Errorf("%d maps are open", open)
		}
	})
}

// A map that has moved to the disk, or was given up, or whose stage is gone, keeps no memory
// because somebody has read it a moment ago; from the disk it is read as before.
func TestWhatHasGoneIsNotOpen(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 4096)
	for what, goes := range map[string]func(f *files, name string, c state.Commit) error{
		"moved": func(f *files, _ string, c state.Commit) error {
			return new(spill).move(t.Context(), movable{f, 9, c})
		},
		"given up": func(f *files, name string, _ state.Commit) error { f.drop(name); return nil },
		"removed":  func(f *files, _ string, _ state.Commit) error { f.store().removeAll("9"); return nil },
	} {
		f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
		name, c, all := mapOfBytes(t, text)
		if err := f.store().put(t.Context(), name, all, strings.NewReader(text), false); err != nil {
			t.Fatal(err)
		}
		m, err := f.open.get(name, c.Size, f.openMap)
		if err != nil || m.onDisk {
			t.Fatalf("%+v, %v", m, err)
		}
		f.open.give(m)
		if err := goes(f, name, c); err != nil {
			t.Fatal(err)
		}
		if !m.closed() {
			t.Errorf("one that was %s is open", what)
		}
		if again, err := f.open.get(name, c.Size, f.openMap); (err == nil) != (what == "moved") || err == nil && !again.onDisk {
			t.Errorf("one that was %s: %+v, %v", what, again, err)
		}
		f.open.end()
	}
}

// What a daemon that was killed has left of a table is in the way of none.
func TestTableThatWasNotFinished(t *testing.T) {
	f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
	name, c, all := mapOfBytes(t, "0123456789abcdef")
	memory := f.store()
	if err := errors.Join(memory.put(t.Context(), name, all, strings.NewReader("0123456789abcdef"), false), os.WriteFile(memory.at(name+idx), all[:5], 0600)); err != nil {
		t.Fatal(err)
	}
	if err := memory.placeTable(name+idx, int64(len(all)), strings.NewReader(string(all))); err != nil {
		t.Fatal(err)
	}
	if err := f.verify(9, c); err != nil {
		t.Error(err)
	}
	f.open.end()
}

// Of a map that has some of its bytes behind its table all is read and checked as if it were
// one file, mapped or not; it has moved to the disk as one.
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
	for _, isMapped := range []bool{true, false} {
		f := onDisk(t, 1<<20, slog.New(slog.DiscardHandler))
		c := state.Commit{Map: 3, Writer: "00000000000000bb", Size: int64(len(text + after)), Sum: all.Sum()}
		name := mapPath(9, c)
		if err := f.store().MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]string{name: text, name + idx: string(all) + after} {
			if err := os.WriteFile(f.store().at(name), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !isMapped {
			mappings.Add(mostMapped)
		}
		err := f.verify(9, c)
		if !isMapped {
			mappings.Add(-mostMapped)
		}
		if err != nil || f.lacks(t.Context(), 9, c) {
			t.Errorf("mapped %v: %v; is it there? %v", isMapped, err, !f.lacks(t.Context(), 9, c))
		}
		holds := func() {
			t.Helper()
			m, err := f.open.get(name, c.Size, f.openMap)
			if err != nil {
				t.Fatal(err)
			}
			defer f.open.give(m)
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
			one, err := f.find(PieceRequest{terms: terms{Stage: 9}, Part: uint64(part)}, c)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, one.length())
			if err := one.read(b); err != nil || string(b) != want {
				t.Errorf("part %d is %q, want %q: %v", part, b, want, err)
			}
			if b := one.inMemory(); (b != nil) != isMapped || b != nil && string(b) != want {
				t.Errorf("part %d is %q where it is mapped, want %q", part, b, want)
			}
			f.open.give(one.openedMap)
		}
		if file, err := f.whole(9, c); file != nil || err != nil {
			t.Errorf("it is one file: %v", err)
		}
		if err := new(spill).move(t.Context(), movable{f, 9, c}); err != nil {
			t.Fatal(err)
		}
		holds()
		file, err := f.whole(9, c)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(file.Name()); err != nil || string(b) != text+after {
			t.Errorf("on the disk it is %q: %v", b, err)
		}
		file.Close()
		f.drop(name)
		for _, cut := range [][2]string{{text[:5], string(all) + after}, {text, string(all) + after[1:]}, {text, string(all)}, {text, after[1:]}, {"", ""}, {text + after + "x", string(all)}} {
			for i, name := range []string{name, name + idx} {
				if err := os.WriteFile(f.store().at(name), []byte(cut[i]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.verify(9, c); !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("files that have %q: %v", cut, err)
			}
			f.forget(name)
		}
	}
}
