// Package sourcetest is what every source must do, as tests.
package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
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
	// Late: Check notices it soon; until then Read has the bytes as they were.
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

// Attach builds the index of a fixture and attaches its source.
func Attach(t testing.TB, f Fixture) *fetch.Dataset {
	t.Helper()
	d := attach(t, f, filepath.Join(t.TempDir(), "index"))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func attach(t testing.TB, f Fixture, path string) *fetch.Dataset {
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
	return d
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
func read(d *fetch.Dataset, first, n uint64) ([]byte, error) {
	extents := d.AppendExtents(nil, first, n)
	var size int64
	for _, e := range extents {
		size += e.Len
	}
	dst := make([]byte, size)
	return dst, d.Read(context.Background(), extents, dst)
}

// want fails the test unless n records from first on are those of f.
func want(t *testing.T, d *fetch.Dataset, f Fixture, first, n uint64) {
	t.Helper()
	got, err := read(d, first, n)
	if err != nil {
		t.Errorf("records %d+%d: %v", first, n, err)
	} else if !bytes.Equal(got, bytes.Join(f.Records[first:first+n], nil)) {
		t.Errorf("records %d+%d have other bytes", first, n)
	}
}

func readSingly(t *testing.T, f Fixture) {
	d := Attach(t, f)
	if d.Records() != uint64(len(f.Records)) {
		t.Fatalf("%d records, want %d", d.Records(), len(f.Records))
	}
	var total int64
	for i, record := range f.Records {
		if size := d.Size(uint64(i)); size != int64(len(record)) {
			t.Fatalf("record %d has %d bytes, want %d", i, size, len(record))
		}
		want(t, d, f, uint64(i), 1)
		total += int64(len(record))
	}
	if d.Bytes() != total {
		t.Errorf("%d bytes, want %d", d.Bytes(), total)
	}
	s := d.Snapshot()
	if s.Reads != d.Records() || s.Bytes != uint64(total) || s.Errors != 0 || s.Reading != 0 {
		t.Errorf("the counters say %+v", s)
	}
}

func readRanges(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	for i := range d.Chunks() {
		c := d.Chunk(i)
		want(t, d, f, c.First, c.Records)
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		first := r.Uint64N(n + 1)
		want(t, d, f, first, few(f, first, r))
	}
}

// few is a number of records from first on that come to a megabyte or so.
func few(f Fixture, first uint64, r *rand.Rand) uint64 {
	n, size := uint64(0), 0
	for limit := r.Uint64N(1000); n < limit && first+n < uint64(len(f.Records)) && size < 1<<20; n++ {
		size += len(f.Records[first+n])
	}
	return n
}

func readShuffled(t *testing.T, f Fixture) {
	d := Attach(t, f)
	r := rand.New(rand.NewPCG(2, 0))
	for range 20 {
		order := r.Perm(len(f.Records))
		order = order[:min(len(order), 500)]
		var extents []index.Extent
		var wanted []byte
		for _, i := range order {
			extents = append(extents, d.Extent(uint64(i)))
			wanted = append(wanted, f.Records[i]...)
			if len(wanted) > 1<<20 {
				break
			}
		}
		dst := make([]byte, len(wanted))
		if err := d.Read(t.Context(), extents, dst); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, wanted) {
			t.Fatalf("records in the order %v have other bytes", order)
		}
	}
}

func readConcurrently(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	var readers sync.WaitGroup
	for seed := range uint64(8) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 0))
			for range 50 {
				first := r.Uint64N(n + 1)
				want(t, d, f, first, few(f, first, r))
				if err := d.Check(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	if s := d.Snapshot(); s.Reading != 0 {
		t.Errorf("%d reads under way after all came back", s.Reading)
	}
}

func chunks(t *testing.T, f Fixture) {
	d := Attach(t, f)
	var next uint64
	var total int64
	for i := range d.Chunks() {
		c := d.Chunk(i)
		if c.First != next || c.Records == 0 {
			t.Fatalf("chunk %d is %+v, want one from record %d on", i, c, next)
		}
		var size int64
		for record := c.First; record < c.First+c.Records; record++ {
			size += d.Size(record)
			if d.ChunkOf(record) != i {
				t.Fatalf("record %d is in chunk %d, want %d", record, d.ChunkOf(record), i)
			}
		}
		if size != c.Bytes {
			t.Errorf("chunk %d says %d bytes and has %d", i, c.Bytes, size)
		}
		next, total = next+c.Records, total+size
	}
	if next != d.Records() || total != d.Bytes() {
		t.Errorf("chunks hold %d records and %d bytes of %d and %d", next, total, d.Records(), d.Bytes())
	}
}

func lengths(t *testing.T, f Fixture) {
	d := Attach(t, f)
	n := uint64(len(f.Records))
	extents := d.AppendExtents(nil, 0, min(n, 10))
	var size int64
	for _, e := range extents {
		size += e.Len
	}
	tests := []struct {
		name    string
		extents []index.Extent
		size    int64
	}{
		{"longer", extents, size + 1},
		{"shorter", extents, size - 1},
		{"no such file", []index.Extent{{File: 1 << 31, Len: 1}}, 1},
		{"past the end", []index.Extent{{Off: 1 << 47, Len: 1}}, 1},
		{"negative offset", []index.Extent{{Off: -1, Len: 1}}, 1},
		{"negative length", []index.Extent{{Off: 1, Len: -1}}, 0},
		{"overflow", []index.Extent{{Off: 1, Len: 1<<63 - 1}}, 0},
	}
	for _, test := range tests {
		if test.size < 0 {
			continue
		}
		if err := d.Read(t.Context(), test.extents, make([]byte, test.size)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", test.name, err)
		}
	}
	if err := d.Read(t.Context(), nil, nil); err != nil {
		t.Errorf("reading nothing: %v", err)
	}
}

func cancelled(t *testing.T, f Fixture) {
	d := Attach(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Read":  d.Read(ctx, nil, nil),
		"Check": d.Check(ctx),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
}

func cancelledScan(t *testing.T, f Fixture) {
	src := open(t, f)
	defer src.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	ctx, cancel := context.WithCancel(t.Context())
	err := fetch.Build(ctx, src, path, func(int64, int64, uint64) { cancel() })
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := fetch.Build(ctx, src, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: got %v, want context.Canceled", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := fetch.Build(t.Context(), src, path, nil); err != nil {
		t.Errorf("again, to the end: %v", err)
	}
}

func rescan(t *testing.T, f Fixture) {
	src := open(t, f)
	defer src.Close()
	dir := t.TempDir()
	var files [2][]byte
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		var last, total int64
		err := fetch.Build(t.Context(), src, path, func(bytes, all int64, _ uint64) {
			if bytes < last || bytes > all {
				t.Errorf("progress went from %d to %d of %d", last, bytes, all)
			}
			last, total = bytes, all
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != total {
			t.Errorf("progress ended at %d of %d", last, total)
		}
		if files[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two scans of one version made two indexes")
	}
}

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

func foreignIndex(t *testing.T, f Fixture) {
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit("another"); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	src := open(t, f)
	defer src.Close()
	if _, err := fetch.Attach(t.Context(), src, x); !errors.Is(err, meta.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
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
	for deadline := time.Now().Add(time.Minute); change.Late && seen == nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		seen = d.Check(t.Context())
	}
	if seen == nil {
		t.Error("neither Check nor Read noticed")
	} else if !strings.Contains(seen.Error(), "rankfs dataset refresh") {
		t.Errorf("%q does not say what to do", seen)
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

func releases(t *testing.T, f Fixture) {
	use := func() {
		d := Attach(t, f)
		want(t, d, f, 0, min(d.Records(), 100))
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Read(t.Context(), nil, nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read after Close: got %v, want ErrClosed", err)
		}
		src := open(t, f)
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	use() // what the process opens once and keeps is open now
	fds, maps, routines := descriptors(t), mappings(t), goleak.IgnoreCurrent()
	for range 3 {
		use()
	}
	if now := descriptors(t); now != fds {
		t.Errorf("%d descriptors, %d before", now, fds)
	}
	if now := mappings(t); now != maps {
		t.Errorf("%d mapped files, %d before", now, maps)
	}
	if err := goleak.Find(routines); err != nil {
		t.Error(err)
	}
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func mappings(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, " /") {
			n++
		}
	}
	return n
}

// A source may map what is in the page cache while it is read from. When
// nobody reads, little may stay in memory through mappings.
const residentBound = 16 << 20

func resident(t *testing.T, f Fixture) {
	d := Attach(t, f)
	before := residentFile(t)
	for range 2 {
		for i := range d.Chunks() {
			c := d.Chunk(i)
			want(t, d, f, c.First, c.Records)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for residentFile(t)-before > residentBound {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are resident a minute after the last read, want at most %d", residentFile(t)-before, residentBound)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var rssFile = regexp.MustCompile(`RssFile:\s*(\d+) kB`)

// residentFile is how much of its mapped files this process has in memory.
func residentFile(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	field := rssFile.FindSubmatch(status)
	if field == nil {
		t.Fatal("no RssFile in /proc/self/status")
	}
	n, err := strconv.ParseInt(string(field[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
