package sourcetest

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
)

// A Fixture is a source with known content.
type Fixture struct {
	Open    func() (fetch.Source, error)
	Records [][]byte // what the source holds, in its order
	Changes []Change // at least one of each kind that the source can suffer
}

// A Change makes the content another, or the source unreadable.
type Change struct {
	Name string
	Do   func() error
	// Unseen: Check may miss it. A Read of what changed never does.
	Unseen bool
	// Late: Check notices it soon; until it or Read does, Read has the bytes as
	// they were.
	Late bool
}

// Run holds a source to the promises of fetch.Source and of the dataset over
// it. It calls make for each test; the fixtures must be equal.
func Run(t *testing.T, make func(t *testing.T) Fixture) {
	tests := []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"reads single records", readSingly},
		{"reads ranges", readRanges},
		{"reads in any order", readShuffled},
		{"reads concurrently", readConcurrently},
		{"covers all with chunks", chunks},
		{"refuses wrong lengths", lengths},
		{"obeys its context", cancelled},
		{"leaves no file of a cancelled scan", cancelledScan},
		{"scans again to the same index", rescan},
		{"keeps its fingerprint", stable},
		{"refuses another version's index", foreignIndex},
		{"releases all when closed", releases},
		{"stays out of memory", resident},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, make(t)) })
	}
	for i, c := range make(t).Changes {
		t.Run("notices "+c.Name, func(t *testing.T) { changed(t, make(t), i) })
	}
}

// A Dataset is the source of a fixture, and the index by which its records are found.
type Dataset struct {
	*fetch.Dataset
	*index.Index
}

// Close closes both.
func (d Dataset) Close() error { return d.Dataset.Close() }

// Extents is where n records from first on stand.
func (d Dataset) Extents(first, n uint64) (extents []index.Extent) {
	for record := first; record < first+n; record++ {
		extents = append(extents, d.Extent(record))
	}
	return index.Merge(extents)
}

// Attach builds the index of a fixture and attaches its source.
func Attach(t testing.TB, f Fixture) Dataset {
	t.Helper()
	d := attach(t, f, filepath.Join(t.TempDir(), "index"))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func attach(t testing.TB, f Fixture, path string) Dataset {
	t.Helper()
	src := open(t, f)
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
	return Dataset{d, x}
}

func open(t testing.TB, f Fixture) fetch.Source {
	t.Helper()
	src, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// read returns n records from first on.
func read(d Dataset, first, n uint64) ([]byte, error) {
	extents := d.Extents(first, n)
	var size int64
	for _, e := range extents {
		size += e.Len
	}
	dst := make([]byte, size)
	return dst, d.Read(context.Background(), extents, dst)
}

// want fails the test unless n records from first on are those of f.
func want(t *testing.T, d Dataset, f Fixture, first, n uint64) {
	t.Helper()
	got, err := read(d, first, n)
	if err != nil {
		t.Errorf("records %d+%d: %v", first, n, err)
	} else if !same(got, f.Records[first:first+n]) {
		t.Errorf("records %d+%d have other bytes", first, n)
	}
}

// same reports whether bytes are those of records, one after the other.
func same(got []byte, records [][]byte) bool {
	for _, record := range records {
		if !bytes.HasPrefix(got, record) {
			return false
		}
		got = got[len(record):]
	}
	return len(got) == 0
}
