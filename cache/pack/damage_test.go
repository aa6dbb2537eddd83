package pack

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"rankfs/meta"
)

// A slab that memory damaged is not served, is dropped and counted, whoever
// reads it, whole or in part; one that is put in its place is as good as new.
func TestDamage(t *testing.T) {
	s, err := New[string](Config{Bytes: 8 << 20, BlockBytes: minBlock, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("rank and step"), 10_000)
	dst := make([]byte, len(plain))
	damage := map[string]int64{"head": 9, "sum of the table": 24, "table": headSize + 40, "block": -20_000, "last": -1}
	for where, at := range damage {
		if err := s.Put(context.Background(), where, plain, Codec{Algorithm: S2}); err != nil {
			t.Fatal(err)
		}
		r := &s.mu.slabs[where].rope
		if at < 0 {
			at = max(r.length+at, entryAt(blocksOf(int64(len(plain)), minBlock)))
		}
		r.chunk(at, 1)[0] ^= 4
		if err := s.Get(where, dst); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("%s: %v", where, err)
		}
		if _, ok := s.Has(where); ok {
			t.Errorf("%s: still there", where)
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

// Whoever reads a slab that is dropped gets it all, and its memory counts until
// then.
func TestDropWhileRead(t *testing.T) {
	s, err := New[int](Config{Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Repeat([]byte("rank and step"), 100_000)
	if err := s.Put(context.Background(), 1, plain, Codec{Algorithm: S2}); err != nil {
		t.Fatal(err)
	}
	l := s.hold(1)
	if !s.Drop(1) {
		t.Error("nothing was dropped")
	}
	if n := s.Stats(); n.Dying != 1 || n.Used != l.real || n.Slabs != 0 || n.Plain != 0 {
		t.Errorf("dropped while read: %+v", n)
	}
	dst := make([]byte, len(plain))
	if err := s.unpack(&l.rope, dst, 0); err != nil || !bytes.Equal(dst, plain) {
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

// A slab that is dropped while it is packed is gone when that is done.
func TestDropWhilePacked(t *testing.T) { synctest.Test(t, testDropWhilePacked) }

func testDropWhilePacked(t *testing.T) {
	s, err := New[int](Config{Bytes: 8 << 20, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := <-s.presses // who packs waits for it
	done := make(chan error)
	go func() { done <- s.Put(t.Context(), 1, make([]byte, 1<<20), Codec{Algorithm: S2}) }()
	synctest.Wait()
	if _, ok := s.Has(1); ok {
		t.Error("there before it was packed")
	}
	if err := s.Put(t.Context(), 1, nil, Codec{}); !errors.Is(err, meta.ErrBusy) {
		t.Errorf("put beside put: %v", err)
	}
	if !s.Drop(1) || s.Drop(1) {
		t.Error("dropped not once")
	}
	s.presses <- p
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := s.Stats(); n.Used != 0 || n.Slabs != 0 || n.Dying != 0 || n.Plain != 0 {
		t.Errorf("dropped while it was packed: %+v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
