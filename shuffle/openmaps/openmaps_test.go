package openmaps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/shuffle/pieces"
)

// An opening has maps whose files have their names as content, and counts how often one is
// opened, with its table.
type opening struct {
	Maps
	dir      string
	counting sync.Mutex
	n        int
}

func newOpening(t *testing.T, maps int) *opening {
	t.Helper()
	dir := t.TempDir()
	for i := range maps {
		for _, name := range []string{mapName(i), mapName(i) + ".idx"} {
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
	table, err = os.Open(filepath.Join(o.dir, name+".idx"))
	return file, table, false, err
}

// get opens a map of which all is in its file.
func (o *opening) get(i int) (*Map, error) {
	return o.Maps.Get(mapName(i), int64(len(mapName(i))), o.open)
}

func (o *opening) opens() int {
	o.counting.Lock()
	defer o.counting.Unlock()
	return o.n
}

func mapName(i int) string { return fmt.Sprintf("7/maps/%06d", i) }

// holds reads a map that is open.
func (m *Map) holds(t *testing.T, i int) {
	t.Helper()
	b := make([]byte, len(mapName(i)))
	if _, err := m.ReadAt(b, 0); err != nil || string(b) != mapName(i) {
		t.Errorf("map %d has %q (%v)", i, b, err)
	}
}

// reads has a map read once.
func (o *opening) reads(t *testing.T, i int) *Map {
	t.Helper()
	m, err := o.get(i)
	if err != nil {
		t.Fatal(err)
	}
	m.holds(t, i)
	o.Give(m)
	return m
}

func (m *Map) closed() bool {
	_, err := m.file.File.Stat()
	_, late := m.table.File.Stat()
	return err != nil && late != nil
}

// A map and its table are opened once for all parts that are read.
func TestMapsAreOpenedOnce(t *testing.T) {
	o := newOpening(t, 8)
	synctest.Test(t, func(t *testing.T) {
		defer o.End()
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

// A map that was given up is closed once it has no reader, and one that comes in its place
// is another.
func TestMapsThatAreGivenUpAreClosed(t *testing.T) {
	o := newOpening(t, 3)
	synctest.Test(t, func(t *testing.T) {
		first, second := o.reads(t, 0), o.reads(t, 1)
		third, err := o.get(2)
		if err != nil {
			t.Fatal(err)
		}
		o.Forget(mapName(0))
		if !first.closed() || second.closed() {
			t.Error("one is open still, or the other is not")
		}
		o.ForgetBelow("7")
		if !second.closed() || third.closed() {
			t.Error("one is open still, or one that is read is not")
		}
		third.holds(t, 2)
		before := o.opens()
		if again := o.reads(t, 2); again == third || o.opens() != before+1 {
			t.Error("what was given up is read again")
		}
		o.Give(third)
		if !third.closed() {
			t.Error("it is open though it has no reader")
		}
		o.End()
		if last := o.reads(t, 1); !last.closed() {
			t.Error("a job that has ended keeps a map open")
		}
	})
}

// A map that was not read for a while is closed, without a call that says so.
func TestMapsThatAreNotReadAreClosed(t *testing.T) {
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
		o.Give(busy)
		time.Sleep(3 * openedTime)
		if !busy.closed() {
			t.Error("it is open though it has no reader")
		}
	})
}

// However many maps there are, not all of them are open, and all can be read.
func TestNotAllMapsAreOpen(t *testing.T) {
	o := newOpening(t, MaxOpened+10)
	synctest.Test(t, func(t *testing.T) {
		defer o.End()
		open := 0
		for i := range MaxOpened + 10 {
			if m := o.reads(t, i); !m.closed() {
				open++
			}
		}
		if open != MaxOpened {
			t.Errorf("%d maps are open", open)
		}
	})
}

// Of a map that has some of its bytes behind its table all is read and checked as if it were
// one file, mapped or not.
func TestAMapInTwoFiles(t *testing.T) {
	const text, after = "what was written", "what comes after it"
	const size = int64(len(text + after))
	var all pieces.Table
	for _, piece := range []string{text[:4], text[4:], after} {
		end := int64(len(piece))
		if len(all) > 0 {
			end += all.Size()
		}
		all = pieces.AppendRow(all, end, xxhash.Sum64String(piece))
	}
	for _, isMapped := range []bool{true, false} {
		opened := func(first, second string) *Map {
			dir := t.TempDir()
			for name, b := range map[string]string{"map": first, "map.idx": second} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !isMapped {
				mappings.Add(maxMapped)
				defer mappings.Add(-maxMapped)
			}
			var o Maps
			m, err := o.Get("map", size, (&opening{dir: dir}).open)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(o.End)
			t.Cleanup(func() { o.Give(m) })
			return m
		}
		m := opened(text, string(all)+after)
		if b, err := m.Table(); err != nil || string(b) != string(all) {
			t.Errorf("its table is %x: %v", b, err)
		}
		if file, err := m.Whole(); file != nil || err != nil {
			t.Errorf("it is one file: %v", err)
		}
		for off := range size + 2 {
			for n := range size + 2 - off {
				b := make([]byte, n)
				got, err := m.ReadAt(b, off)
				want := (text + after)[min(off, size):min(off+n, size)]
				if string(b[:got]) != want || (err == nil) != (got == len(b)) && err != io.EOF {
					t.Fatalf("%d bytes at %d are %q, want %q: %v", n, off, b[:got], want, err)
				}
			}
		}
		for part, want := range []string{text[:4], text[4:], after} {
			one := Piece{Map: m, Rows: all[pieces.RowBytes*part:][:pieces.RowBytes]}
			if part > 0 {
				one.Begin = all.End(uint64(part - 1))
			}
			b := make([]byte, one.Length())
			if err := one.Read(b); err != nil || string(b) != want {
				t.Errorf("part %d is %q, want %q: %v", part, b, want, err)
			}
			if b := one.InMemory(); (b != nil) != isMapped || b != nil && string(b) != want {
				t.Errorf("part %d is %q where it is mapped, want %q", part, b, want)
			}
		}
		if err := m.Fits(all); err != nil {
			t.Errorf("mapped %v: %v", isMapped, err)
		}
		for _, cut := range [][2]string{{text[:5], string(all) + after}, {text, string(all) + after[1:]}, {text, string(all)}, {text, after[1:]}, {"", ""}, {text + after + "x", string(all)}} {
			m := opened(cut[0], cut[1])
			b, err := m.Table()
			if err == nil && string(b) == string(all) {
				err = m.Fits(all)
			} else if err == nil {
				err = meta.ErrCorrupt // as a reader finds that knows the sum of the table
			}
			if !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("mapped %v, files that have %q: %v", isMapped, cut, err)
			}
		}
	}
}
