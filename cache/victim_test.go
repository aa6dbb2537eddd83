package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

// What goes first is what is worth least of all that is idle, though one batch of each heap
// is looked at: while readers come to all of it, and when one has left what it would have come
// to. Heaps are in the order of times that were expected, so it is so but for a little.
func TestLeastGoesFirst(t *testing.T) { synctest.Test(t, testLeastGoesFirst) }

func testLeastGoesFirst(t *testing.T) {
	const places, idle, pace = 512, 10 * time.Second, 10 * time.Millisecond
	k := newCache(t, cache.Config{RAMBytes: places * 32 << 10, Workers: 1, Idle: idle})
	leaves := &testSeries{id: 8, steps: 2 * places, size: 32 << 10}
	const unknown = -1e9 // is above the worth of what no reader comes to, and below all others
	const near = 0.1     // seconds, of the twenty that an epoch takes
	left := 0
	for e, p := range epochs(2, 4*places, false) {
		for step := range p.steps {
			time.Sleep(pace)
			open(t, k, p, 0, step).Release()
			if e == 0 && step < places/4 {
				open(t, k, leaves, 0, step).Release()
			}
			if step%8 != 7 { // all idle batches are looked at; and the first open of an epoch asks for the next one
				continue
			}
			synctest.Wait()
			first, least, idle := k.Least()
			if idle > places*3/4 && first > max(least, unknown)+near {
				t.Fatalf("epoch %d, step %d: of %d idle batches what goes first is worth %v, the least %v", e, step, idle, first, least)
			}
			if k.Readers() == 1 && least < unknown {
				left++
			}
		}
	}
	if left == 0 {
		t.Error("nothing is idle that no reader comes to, want what one that has left would have read")
	}
}

// A batch's place in the order of eviction is found some times for each open: nothing is
// allocated for that.
func TestPlacesAreFoundInPlace(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	p := &testSeries{steps: 8, size: 32 << 10}
	for step := range p.steps {
		open(t, k, p, 0, step).Release()
	}
	idle := 0
	k.EachIdle(func(place func()) {
		idle++
		if n := testing.AllocsPerRun(10, place); n > 0 {
			t.Errorf("%v objects are allocated for a place", n)
		}
	})
	if idle < int(p.steps) {
		t.Errorf("%d batches are idle, want %d", idle, p.steps)
	}
}
