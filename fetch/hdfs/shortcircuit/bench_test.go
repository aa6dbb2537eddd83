package shortcircuit_test

import (
	"hash/crc32"
	"os"
	"testing"
)

// BenchmarkReadAt reads a block of 128 MiB that the page cache has.
func BenchmarkReadAt(b *testing.B) {
	const size = 128 << 20
	x := newReplica(b, size, 512, 2)
	c := newDatanode(b, pass(x.data, x.sums)).client(b)
	f, err := c.Open(b.Context(), block(1, size))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Release()
	p := make([]byte, size)
	b.SetBytes(size)
	b.Run("read", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if err := f.ReadAt(p, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(size)
		g, _ := os.Open(x.data)
		defer g.Close()
		for b.Loop() {
			for at := 0; at < size; at += 128 << 10 {
				g.ReadAt(p[at:at+128<<10], int64(at))
			}
		}
	})
	b.Run("sums", func(b *testing.B) {
		b.SetBytes(size)
		t := crc32.MakeTable(crc32.Castagnoli)
		q := p[:128<<10]
		for b.Loop() {
			for range size / len(q) {
				for i := 0; i < len(q); i += 512 {
					crc32.Checksum(q[i:i+512], t)
				}
			}
		}
	})
}
