package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// Nothing is made ready for a rank that has been silent for longer than a reader may
// be, nor is it counted as one; when it comes back it is a reader again.
func TestIdle(t *testing.T) { synctest.Test(t, testIdle) }

func testIdle(t *testing.T) {
	const idle = time.Minute
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1, Idle: idle})
	p := &testSeries{steps: 1000, size: 64 << 10}
	step := uint64(0)
	reads := func() {
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			open(t, k, p, 0, step).Release()
			step++
		}
		awaitQuiet(k)
	}
	evicted := func() (filled uint64) {
		before := k.Stats().Fills
		for at := range p.steps {
			k.Discard(p.Key(0, at))
		}
		k.Allow(64<<20, true) // which has workers look for what to do
		awaitQuiet(k)
		return k.Stats().Fills - before
	}
	reads()
	time.Sleep(idle - time.Second)
	if n := evicted(); n == 0 || k.Readers() != 1 {
		t.Errorf("before its time: %d readers, %d batches made ready for it", k.Readers(), n)
	}
	time.Sleep(2 * time.Second)
	if n := k.Readers(); n != 0 {
		t.Errorf("%d readers after more than %v without an open", n, idle)
	}
	if n := evicted(); n != 0 {
		t.Errorf("%d batches were made ready for a rank that reads no more", n)
	}
	reads()
	if n := k.Readers(); n != 1 || k.Stats().Fills < step {
		t.Errorf("it is back: %d readers, %d fills for %d opens", n, k.Stats().Fills, step)
	}
}

// A reader that has opened the only batch of a series that is read once shares memory no longer:
// with very many such series the next open would go through all.
func TestOnlyBatchOfASeries(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	for id := range byte(100) {
		open(t, k, &testSeries{id: id, steps: 1, size: 4 << 10, once: true, last: true}, 0, 0).Release()
	}
	if n := k.Tenants(); n != 0 {
		t.Errorf("%d tenants after the only batches of 100 series", n)
	}
	open(t, k, &testSeries{id: 200, steps: 2, size: 4 << 10, once: true, last: true}, 0, 1).Release()
	open(t, k, &testSeries{id: 201, steps: 1, size: 4 << 10, last: true}, 0, 0).Release()
	if n := k.Tenants(); n != 2 {
		t.Errorf("%d tenants of series that have more, or are read again, want 2", n)
	}
}

// Several jobs that read one rank are a reader each. A job that begins anew elsewhere is
// one too, and what it was before is none any more a while after.
func TestReadersOfOneRank(t *testing.T) { synctest.Test(t, testReadersOfOneRank) }

func testReadersOfOneRank(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	p := &testSeries{steps: 10_000, size: 4 << 10}
	reads := func(n int, steps ...*uint64) {
		for range n {
			time.Sleep(10 * time.Millisecond)
			for _, step := range steps {
				open(t, k, p, 0, *step).Release()
				*step++
			}
		}
	}
	readers := func(want int, of string) {
		t.Helper()
		if n := k.Readers(); n != want {
			t.Errorf("%s: %d readers, want %d", of, n, want)
		}
	}
	first, second, third := uint64(0), uint64(1000), uint64(2000)
	reads(300, &first, &second, &third)
	readers(3, "three jobs")
	open(t, k, p, 0, 9000).Release()
	readers(3, "and a look elsewhere")
	reads(300, &first)
	readers(1, "two have ended")
	anew := uint64(5000)
	reads(20, &anew)
	readers(2, "it has just begun anew")
	reads(300, &anew)
	readers(1, "it has begun anew")
	for range 20 { // one more each time
		anew += 100
		reads(3, &anew)
	}
	readers(8, "it begins anew all the time")
}
