package cache_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/meta"
)

// What is made ready by hand is there, takes the place of what nobody will use,
// and not that of what a reader will come to.
func TestPrepare(t *testing.T) { synctest.Test(t, testPrepare) }

func testPrepare(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1})
	job := &testPlan{id: 1, steps: 20, size: 1 << 20}
	old := &testPlan{id: 2, steps: 30, size: 1 << 20, last: true}
	warm := &testPlan{id: 3, steps: 30, size: 1 << 20, last: true}
	readEpoch(t, k, old, time.Millisecond)
	readEpoch(t, k, job, time.Second)
	ready := uint64(0)
	var err error
	for err == nil && ready < warm.steps {
		time.Sleep(time.Second)
		if err = k.Prepare(t.Context(), warm, 0, ready); err == nil {
			ready++
		}
	}
	if ready < 6 || ready > 12 || !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("%d batches were made ready in 32 MiB of which a job will use 20: %v", ready, err)
	}
	for step := range ready {
		if _, ok := k.Contains(warm, 0, step); !ok {
			t.Errorf("batch %d is gone", step)
		}
	}
	if fills := readEpoch(t, k, job, time.Second); fills > 0 {
		t.Errorf("%d batches of the job were filled again", fills)
	}
}

func TestDiscard(t *testing.T) {
	k := newCache(t, cache.Config{})
	p := &testPlan{id: 1, steps: 2, size: 1 << 20, last: true}
	held := open(t, k, p, 0, 0)
	open(t, k, p, 0, 1).Release()
	if k.Discard(p, 0, 0) || !k.Discard(p, 0, 1) {
		t.Error("discarded what is held, or not what is not")
	}
	if _, ok := k.Contains(p, 0, 1); ok {
		t.Error("what was discarded is there")
	}
	check(t, held, p, 0, 0)
	held.Release()
}

// A cache that may have less than its budget shrinks at once, but for what is
// held, and grows again.
func TestAllow(t *testing.T) { synctest.Test(t, testAllow) }

func testAllow(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	p := &testPlan{id: 1, steps: 60, size: 1 << 20}
	readEpoch(t, k, p, time.Second)
	held := open(t, k, p, 0, 30)
	k.Allow(20<<20, false)
	if s := k.Stats().RAM; s.Used > 20<<20 || s.Budget != 20<<20 {
		t.Errorf("%d bytes used of %d allowed", s.Used, s.Budget)
	}
	check(t, held, p, 0, 30)
	held.Release()
	before := k.Stats().Prefetched
	readEpoch(t, k, p, time.Second)
	if n := k.Stats().Prefetched - before; n > 0 {
		t.Errorf("%d batches were made ready ahead while memory was short", n)
	}
	k.Allow(64<<20, true)
	readEpoch(t, k, p, time.Second)
	if fills := readEpoch(t, k, p, time.Second); fills > 0 {
		t.Errorf("%d batches were filled again though all fit", fills)
	}
}
