package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A line is a plan of one rank, of batches of a MiB, that comes again and again.
type line struct {
	Plan
	steps uint64
	id    byte
}

func (p line) ID() [16]byte    { return [16]byte{p.id} }
func (p line) Dataset() string { return "line" }
func (p line) Steps() uint64   { return p.steps }
func (p line) Key(rank, step uint64) Key {
	return Key{Plan: p.ID(), Rank: rank, Step: step}
}
func (p line) Find(k Key) (rank, step uint64, ok bool)                { return k.Rank, k.Step, k.Plan == p.ID() }
func (p line) Next() Plan                                             { return p }
func (p line) Once() bool                                             { return false }
func (p line) Shared() bool                                           { return false }
func (p line) Ahead(uint64, uint64) bool                              { return true }
func (p line) Size(uint64, uint64) int64                              { return 1 << 20 }
func (p line) Fill(_ context.Context, _, step uint64, b []byte) error { b[0] = byte(step); return nil }

func newLine(t *testing.T, c Config) *Cache {
	t.Helper()
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (p line) read(t *testing.T, k *Cache, step uint64) {
	t.Helper()
	s, err := k.Open(t.Context(), p, 0, step%p.steps)
	if err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	s.Release()
}

// Whoever packs what leaves memory is stuck: opens that need its room are served
// all the same.
func TestNoOpenWaitsForWhatLeaves(t *testing.T) {
	k := newLine(t, Config{RAMBytes: 16 << 20, Policy: "all-packed", OpenTimeout: time.Minute})
	p := line{id: 1, steps: 64}
	for step := range uint64(8) {
		p.read(t, k, step)
	}
	k.packed.mu.Lock() // and it stays so, in the middle of a batch
	defer k.packed.mu.Unlock()
	for step := uint64(8); step < 200; step++ {
		p.read(t, k, step)
	}
}

// What leaves memory is written before its room is needed, as long as disks keep
// up: then all of it is there, and there is room for the next batch. What is
// pinned to memory stays.
func TestReserveOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLine(t, Config{RAMBytes: 32 << 20, Workers: 1, Policy: "all-disk", NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}})
		p, pinned := line{id: 1, steps: 100}, line{id: 2, steps: 8}
		k.Pin(pinned.ID(), policy.RAM)
		for step := range pinned.steps {
			pinned.read(t, k, step)
		}
		for step := range p.steps {
			time.Sleep(time.Millisecond)
			p.read(t, k, step)
		}
		time.Sleep(time.Second)
		if free := k.ram.free(); free < 1<<20 {
			t.Errorf("%d bytes free for the next batch", free)
		}
		for step := range p.steps {
			if _, ok := k.Contains(p, 0, step); !ok {
				t.Errorf("step %d is gone", step)
			}
		}
		for step := range pinned.steps {
			if tier, _ := k.Contains(pinned, 0, step); tier != "ram" {
				t.Errorf("step %d, which is pinned to memory, is in %q", step, tier)
			}
		}
	})
}
