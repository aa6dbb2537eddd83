package cache_test

import (
	"testing"

	"rankfs/cache"
)

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
