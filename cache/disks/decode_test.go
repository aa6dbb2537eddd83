package disks

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/diskdir"
)

func labels() []label {
	return []label{
		{},
		{key: Key{Series: [16]byte{1, 2, 255}, Rank: 3, Step: 17}, size: 1 << 20, sum: 0xdeadbeef},
		{key: Key{Rank: math.MaxUint64, Step: math.MaxUint64}, size: math.MaxInt64, sum: math.MaxUint64},
	}
}

// A name that is taken for a slab's is exactly what a slab would be called.
func FuzzParseName(f *testing.F) {
	for _, l := range labels() {
		f.Add(l.name())
		f.Add(l.name() + " ")
	}
	f.Add("0-0-0-0-0.slab")
	f.Fuzz(func(t *testing.T, name string) {
		if l, ok := parseName(name); ok && l.name() != name {
			t.Errorf("%q means %q", name, l.name())
		}
	})
}

func TestNames(t *testing.T) {
	for _, l := range labels() {
		if got, ok := parseName(l.name()); !ok || got != l {
			t.Errorf("%+v became %+v", l, got)
		}
	}
}

// indexOf is an index of the items.
func indexOf(tb testing.TB, items []item) []byte {
	tb.Helper()
	var b bytes.Buffer
	size, err := writeIndex(&b, func(next []item) ([]item, error) {
		next = append(next, items[:min(len(items), cap(next))]...)
		items = items[len(next):]
		return next, nil
	})
	if err != nil || size != int64(b.Len()) {
		tb.Fatalf("%d bytes are said to be %d: %v", b.Len(), size, err)
	}
	return b.Bytes()
}

// An index that is accepted is one that could have been written. The sum is
// put right, or nothing else would ever be tried.
func FuzzScanIndex(f *testing.F) {
	l := labels()
	f.Add([]byte(nil))
	f.Add(indexOf(f, nil))
	f.Add(indexOf(f, []item{{l[1], 1 << 20}, {l[0], 0}}))
	f.Add(indexOf(f, []item{{l[2], math.MaxInt64}}))
	f.Add(indexOf(f, slices.Repeat([]item{{l[1], 1 << 20}}, indexBlock+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 8 {
			body := b[:len(b)-8]
			b = binary.LittleEndian.AppendUint64(slices.Clone(body), xxhash.Sum64(body))
		}
		var items []item
		err := scanIndex(bytes.NewReader(b), int64(len(b)), func(next []item) error {
			items = append(items, next...)
			return nil
		})
		if err == nil && !bytes.Equal(indexOf(t, items), b) {
			t.Errorf("%d items are not what they were", len(items))
		}
		for _, i := range items {
			if i.size < 0 || i.real < 0 || i.real > 2<<50 {
				t.Errorf("%+v", i)
			}
		}
	})
}

// A byte that is not what was written, or not there, is found in any piece.
func TestIndexDamaged(t *testing.T) {
	whole := indexOf(t, slices.Repeat([]item{{labels()[1], 1 << 20}}, 2*indexBlock+1))
	accepted := func(b []byte, size int) bool {
		return scanIndex(bytes.NewReader(b), int64(size), func([]item) error { return nil }) == nil
	}
	if !accepted(whole, len(whole)) {
		t.Fatal("what was written is refused")
	}
	for at := 0; at < len(whole); at += 61 {
		b := slices.Clone(whole)
		b[at] ^= 1
		if accepted(b, len(b)) || accepted(whole[:at], at) || accepted(whole[:at], len(whole)) {
			t.Errorf("accepted with byte %d wrong, or cut there", at)
		}
	}
}

// While an index is written slabs are used, come and go. It has all that were
// let be, in order, and of the others what was so at some time.
func TestIndexMeanwhile(t *testing.T) {
	const n = 3*indexBlock + 7
	d := newDirectory(Dir{t.TempDir(), 1 << 50}, Config{}, nil)
	p := &place{}
	d.slabs.mu.place = p
	for i := range n {
		d.slabs.mu.recall(label{Key{Step: uint64(i)}, 1 << 20, uint64(i)}, 1<<20, true)
	}
	busy := make(map[uint64]bool)
	most, at := n, uint64(0)
	var b bytes.Buffer
	_, err := writeIndex(&b, func(items []item) ([]item, error) {
		for _, step := range []uint64{at, at + indexBlock - 1, at + indexBlock, n - 1 - at/2} {
			if d.slabs.mu.find(Key{Step: step}) != 0 {
				busy[step] = true
				d.slabs.touch(Key{Step: step})
			}
		}
		if id := d.slabs.mu.Find(Key{Step: at + 1}); id != 0 {
			busy[at+1] = true
			d.slabs.mu.lose(id)
		}
		d.slabs.mu.recall(label{Key{Rank: 1, Step: at}, 1 << 20, 0}, 1<<20, true)
		at += indexBlock
		items = d.index.tellOn(items, most)
		most -= len(items)
		return items, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var told []uint64
	if err := scanIndex(&b, int64(b.Len()), func(items []item) error {
		for _, i := range items {
			if i.size != 1<<20 || i.real != 1<<20 || i.key.Rank == 0 && i.sum != i.key.Step {
				t.Errorf("%+v", i)
			}
			if i.key.Rank == 0 && !busy[i.key.Step] {
				told = append(told, i.key.Step)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) != n-len(busy) || !slices.IsSorted(told) {
		t.Errorf("%d slabs that were let be, want %d", len(told), n-len(busy))
	}
}

// What is read of an index that does not match its sum is not known.
func TestIndexNotBelieved(t *testing.T) {
	d := newDirectory(Dir{t.TempDir(), 1 << 50}, Config{Log: slog.New(slog.DiscardHandler), Patience: time.Minute}, nil)
	index := indexOf(t, slices.Repeat([]item{{labels()[1], 1 << 20}}, 2*indexBlock))
	index[len(index)-9] ^= 1 // in the last row
	if err := os.WriteFile(d.path+"/"+indexName, index, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p := &place{Place: &diskdir.Place{Root: root}, listed: make(chan struct{})}
	d.slabs.enter(p)
	loaded := d.index.load(p)
	if used, _ := d.budget.Use(); loaded || d.slabs.mu.End() != 1 || used != 0 {
		t.Errorf("%d rows, %d bytes used", d.slabs.mu.End(), used)
	}
	d.health.Disk.Wait()
	if _, err := os.Stat(d.path + "/" + indexName); err == nil {
		t.Error("it is still there")
	}
}
