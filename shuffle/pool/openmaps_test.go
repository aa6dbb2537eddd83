package pool

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta/state"
)

// An opening has maps whose files have their names as content, and counts how often one is
// opened.
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

func (o *opening) open(name string) (*os.File, bool, error) {
	o.counting.Lock()
	defer o.counting.Unlock()
	o.n++
	f, err := os.Open(filepath.Join(o.dir, name))
	return f, false, err
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
	m, err := o.get(mapName(i), o.open)
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
		if n := o.opens(); n != 16 {
			t.Errorf("8 maps and their tables were opened %d times", n)
		}
		if _, err := o.get(mapName(8), o.open); !os.IsNotExist(err) {
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
		third, err := o.get(mapName(2), o.open)
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
		if again := o.reads(t, 2); again == third || o.opens() != before+2 {
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
		if n := o.opens(); n != 4 {
			t.Errorf("one that is read was opened anew: %d", n)
		}
		busy, err := o.get(mapName(1), o.open)
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
		if err := f.store().put(name, all, strings.NewReader(text), false); err != nil {
			t.Fatal(err)
		}
		m, err := f.open.get(name, f.openMap)
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
		if again, err := f.open.get(name, f.openMap); (err == nil) != (what == "moved") || err == nil && !again.onDisk {
			t.Errorf("one that was %s: %+v, %v", what, again, err)
		}
		f.open.end()
	}
}
