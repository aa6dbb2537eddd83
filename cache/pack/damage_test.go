package pack

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"unsafe"

	"rankfs/meta"
)

// A slab that was damaged in memory is not served, is dropped and counted, whether it is
// read whole or in part; one that is put in its place is as good as new.
func TestDamage(t *testing.T) {
	s, err := NewKeyed[string](Config{Bytes: 8 << 20, BlockBytes: minBlock, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("rank and step"), 10_000)
	dst := make([]byte, len(plain))
	damage := map[string]int64{"plain length": 9, "packed length": 17, "name": 30, "sum of the table": headSize - 1, "table": headSize + 40, "block": -20_000, "last": -1}
	for where, at := range damage {
		if err := s.Put(context.Background(), where, plain, Codec{Algorithm: S2}); err != nil {
			t.Fatal(err)
		}
		id, _ := s.id(where)
		r := s.arena.rope(number(id))
		r.trim()
		if at < 0 {
			at = max(r.length+at, entryAt(blocksOf(int64(len(plain)), minBlock)))
		}
		r.inFrame(at, 1)[0] ^= 4
		if err := s.Get(where, dst); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: %v", where, err)
		}
		if _, ok := s.Has(where); ok {
			t.Errorf("%s: still there", where)
		}
		if err := s.Get(where, dst); !errors.Is(err, meta.ErrNotExist) {
			t.Errorf("%s: once more: %v", where, err)
		}
		if !s.Drop(where) {
			t.Errorf("%s: nothing to give back", where)
		}
		if err := s.Put(context.Background(), where, plain, Codec{Algorithm: S2}); err != nil {
			t.Fatal(err)
		}
		if err := s.Get(where, dst); err != nil || !bytes.Equal(dst, plain) {
			t.Errorf("%s: put again: %v", where, err)
		}
	}
	if n := s.Stats(); n.Damaged != uint64(len(damage)) || n.Dying != 0 || n.Slabs != len(damage) {
		t.Errorf("%+v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A reader of a slab that is dropped meanwhile gets all of it, and its memory counts until
// then.
func TestDropWhileRead(t *testing.T) {
	s, err := NewKeyed[int](Config{Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("rank and step"), 100_000)
	if err := s.Put(context.Background(), 1, plain, Codec{Algorithm: S2}); err != nil {
		t.Fatal(err)
	}
	id, _ := s.id(1)
	l := s.hold(number(id))
	if !s.Drop(1) {
		t.Error("nothing was dropped")
	}
	if n := s.Stats(); n.Dying != 1 || n.Used != l.rope.real || n.Slabs != 0 || n.Plain != 0 {
		t.Errorf("dropped while read: %+v", n)
	}
	dst := make([]byte, len(plain))
	v, err := parse(l.rope, defaultBlock)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.unpack(v, dst); err != nil || !bytes.Equal(dst, plain) {
		t.Errorf("read after the drop: %v", err)
	}
	s.release(l)
	if n := s.Stats(); n.Dying != 0 || n.Used != 0 {
		t.Errorf("read and dropped: %+v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A number leads to the slab of its name alone.
func TestNumberOfAnother(t *testing.T) {
	s, err := New(Config{Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	mine, other := bytes.Repeat([]byte("rank and step"), 1000), bytes.Repeat([]byte("step and rank"), 1000)
	old, _, err := s.Put(t.Context(), Name{1}, mine, Codec{Algorithm: S2})
	if err != nil || !s.Drop(old) {
		t.Fatal(err)
	}
	id, _, err := s.Put(t.Context(), Name{2}, other, Codec{Algorithm: S2})
	if err != nil || id != old {
		t.Fatalf("%d after %d: %v", id, old, err)
	}
	dst := make([]byte, len(mine))
	for _, dst := range [][]byte{dst, dst[:1]} { // of its length, and not
		if err := s.Get(old, Name{1}, dst); !errors.Is(err, meta.ErrNotExist) {
			t.Errorf("by the number of what was dropped: %v", err)
		}
	}
	if err := s.Get(id, Name{2}, dst); err != nil || !bytes.Equal(dst, other) {
		t.Errorf("by its own: %v", err)
	}
	for _, id := range []uint32{id + 1, 1 << frameBits, 1<<frameBits - 1, uint32(none)} {
		if err := s.Get(id, Name{2}, dst); !errors.Is(err, meta.ErrNotExist) || s.Drop(id) {
			t.Errorf("number %d: %v", id, err)
		}
	}
	if n := s.Stats(); n.Damaged != 0 || n.Slabs != 1 {
		t.Errorf("%+v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Frames are used again, and segments without a slab are gone. What is known of
// a frame is little.
func TestFramesAreUsedAgain(t *testing.T) {
	if size := unsafe.Sizeof(cell{}); size != 12 {
		t.Errorf("%d bytes", size)
	}
	s, err := New(Config{Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 64<<10)
	put := func() uint32 {
		id, _, err := s.Put(t.Context(), Name{}, plain, Codec{Algorithm: S2})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	const n = 3 * segmentBytes / frameBytes
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = put()
	}
	for i := 0; i < n; i += 2 {
		s.Drop(ids[i])
	}
	for i := 0; i < n; i += 2 {
		ids[i] = put()
	}
	if st, segments := s.Stats(), len(s.arena.mu.segments); st.Used != n*int64(pages(1)) || st.Slabs != n || segments != 3 {
		t.Errorf("%d segments, %+v", segments, st)
	}
	seen := make(map[uint32]bool)
	for _, id := range ids {
		if seen[id] || !s.Drop(id) {
			t.Errorf("number %d", id)
		}
		seen[id] = true
	}
	if n := len(s.arena.mu.segments); n != 0 {
		t.Errorf("%d segments are left", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
