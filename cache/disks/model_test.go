package disks_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

// Whatever is done in whatever order: a slab that is there has its bytes, one
// that was dropped is gone, one that just came is there, and what is counted
// is what is on the disks.
func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		top := t.TempDir()
		c := disks.Config{Dirs: []disks.Dir{{Path: top + "/a", Bytes: 100 << 10}, {Path: top + "/b", Bytes: 60 << 10}}, Trust: 1}
		if rapid.Bool().Draw(r, "first") {
			c.First = func(a, b disks.Key) bool { return a.Step < b.Step }
		}
		k := start(t, c)
		defer func() { k.stop() }()
		slab := rapid.IntRange(0, 15)
		size := func(n int) int { return n * 1500 }
		held := make(map[int]*disks.Slab)
		release := func() {
			for n, s := range held {
				compare(t, s, key(n), size(n))
				s.Release()
			}
			clear(held)
		}
		defer release()
		r.Repeat(map[string]func(*rapid.T){
			"put": func(r *rapid.T) {
				n := slab.Draw(r, "slab")
				err := k.Put(key(n), content(key(n), size(n)), nil)
				if err == nil != k.got(n, size(n)) || err != nil && !errors.Is(err, disks.ErrNoRoom) {
					r.Fatalf("put %d: %v", n, err)
				}
			},
			"drop": func(r *rapid.T) {
				n := slab.Draw(r, "slab")
				if k.Drop(key(n)); k.Has(key(n)) {
					r.Fatalf("%d is still there", n)
				}
			},
			"open": func(r *rapid.T) {
				n := slab.Draw(r, "slab")
				if s, err := k.Open(key(n)); err != nil {
					r.Fatal(err)
				} else if s != nil && held[n] == nil {
					held[n] = s
				} else if s != nil {
					s.Release()
				}
			},
			"release": func(r *rapid.T) { release() },
			"restart": func(r *rapid.T) {
				release()
				k.stop()
				k = start(t, c)
				for i := range c.Dirs { // an old index may have told of more
					eventually.True(t, "the names have been seen", func() bool { return k.Stats()[i].Used == diskUsage(t, c.Dirs[i].Path) })
				}
			},
			"": func(r *rapid.T) {
				if n := k.Held(); n > len(held) { // or fewer: some were dropped
					r.Fatalf("%d slabs are held, want %d", n, len(held))
				}
				if len(held) > 0 {
					return // some may have no name
				}
				for i, s := range k.Stats() {
					if on := diskUsage(t, c.Dirs[i].Path); s.Used != on || s.Used > s.Budget || s.Damaged+s.Lost+s.Failed > 0 || s.Fault != nil {
						r.Fatalf("%+v, %d bytes on disk", s, on)
					}
				}
			},
		})
	})
}
