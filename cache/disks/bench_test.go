package disks

import (
	"fmt"
	"os"
	"testing"
)

// BenchmarkRestart is until the slabs that an index tells of can be opened.
func BenchmarkRestart(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			items := make([]item, n)
			for i := range items {
				items[i] = item{label{Key{Step: uint64(i)}, 1 << 20, 1}, 1 << 20}
			}
			index, dir := encodeIndex(items), b.TempDir()
			for b.Loop() {
				if err := os.WriteFile(dir+"/"+indexName, index, 0o600); err != nil {
					b.Fatal(err)
				}
				t, err := New(Config{Dirs: []Dir{{dir, 1 << 50}}})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := t.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
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
	if err := t.Put(Key{}, make([]byte, 1<<20)); err != nil {
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
