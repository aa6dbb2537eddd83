package disks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// BenchmarkRestart is until the slabs that an index tells of can be opened.
func BenchmarkRestart(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 8_400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			items := make([]item, n)
			for i := range items {
				items[i] = item{label{Key{Step: uint64(i)}, 1 << 20, 1}, 1 << 20}
			}
			index, dir := b.TempDir()+"/index", b.TempDir()
			if err := os.WriteFile(index, indexOf(b, items), 0o600); err != nil {
				b.Fatal(err)
			}
			items = nil
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				if err := os.Link(index, dir+"/"+indexName); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				t, err := New(Config{Dirs: []Dir{{dir, 1 << 50}}})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := t.Close(); err != nil {
					b.Fatal(err)
				}
				if err := os.Remove(dir + "/" + indexName); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSaveIndex is the writing of an index.
func BenchmarkSaveIndex(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 8_400_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t, err := New(Config{Dirs: []Dir{{b.TempDir(), 1 << 50}}})
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			d := t.dirs[0]
			d.slabs.mu.Lock()
			for i := range n {
				d.slabs.mu.recall(label{scattered(i), 1 << 20, uint64(i)}, 1<<20, true)
			}
			d.slabs.mu.Unlock()
			b.ReportAllocs()
			for b.Loop() {
				d.slabs.mu.Lock()
				d.slabs.mu.change++
				d.slabs.mu.Unlock()
				if err := d.index.save(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheck is what an open costs of a slab that is open already.
func BenchmarkCheck(b *testing.B) {
	t, err := New(Config{Dirs: []Dir{{b.TempDir(), 1 << 30}}})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	if err := t.Put(Key{}, make([]byte, 1<<20), nil); err != nil {
		b.Fatal(err)
	}
	s, err := t.Open(Key{})
	if err != nil || s == nil {
		b.Fatal(err)
	}
	defer s.Release()
	for b.Loop() {
		if err := s.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

// million is a directory that knows a million slabs, of no files.
func million(tb testing.TB) *Tier {
	tb.Helper()
	d := newDirectory(Dir{tb.TempDir(), 1 << 50}, Config{}, nil)
	p := &place{}
	d.slabs.mu.place = p
	for n := range 1_000_000 {
		d.slabs.mu.recall(label{scattered(n), 1 << 20, uint64(n)}, 1<<20, true)
	}
	return &Tier{dirs: []*directory{d}}
}

// scattered is the key of slab n.
func scattered(n int) Key {
	return Key{Series: [16]byte{byte(n % 3)}, Rank: uint64(n % 8), Step: uint64(n / 8)}
}

func BenchmarkHas(b *testing.B) {
	t := million(b)
	for _, test := range []struct {
		name  string
		first int
		want  bool
	}{{"there", 0, true}, {"not", 1_000_000, false}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				if t.Has(scattered(test.first+rand.IntN(1_000_000))) != test.want {
					b.Fatal("wrong")
				}
			}
		})
	}
}

// BenchmarkUse is an open and its end, without the file.
func BenchmarkUse(b *testing.B) {
	d := million(b).dirs[0]
	for b.Loop() {
		s, _ := d.reader.take(scattered(rand.IntN(1_000_000)))
		d.reader.unuse(s)
	}
}
