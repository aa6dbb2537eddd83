package cache_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// slow is a source that takes its time over every batch.
func slow(each time.Duration) func(rank, step uint64) error {
	return func(uint64, uint64) error { time.Sleep(each); return nil }
}

// readEpoch opens all batches of a rank, each checked, and says how many of
// them came from the source.
func readEpoch(t *testing.T, k *cache.Cache, p *testSeries, pace time.Duration) (fills uint64) {
	t.Helper()
	before := k.Stats().Fills
	for step := range p.steps {
		time.Sleep(pace)
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
		if s := k.Stats().RAM; s.Used > s.Budget {
			t.Fatalf("%d bytes of memory used, budget of %d", s.Used, s.Budget)
		}
	}
	return k.Stats().Fills - before
}

// Data that exceed memory, but not if they are packed, come from a slow source
// once or twice: from then on they are unpacked.
func TestPacked(t *testing.T) { synctest.Test(t, testPacked) }

func testPacked(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1})
	p := &testSeries{id: 1, steps: 64, size: 1 << 20, fail: slow(50 * time.Millisecond)}
	for range 3 {
		readEpoch(t, k, p, 10*time.Millisecond)
	}
	if fills := readEpoch(t, k, p, 10*time.Millisecond); fills > 0 {
		t.Errorf("%d of %d batches came from the source in the fourth epoch, all fit into memory packed", fills, p.steps)
	}
	time.Sleep(time.Minute) // the last opens are planned for
	s := k.Stats()
	time.Sleep(time.Hour)
	if again := k.Stats(); s.Choices == 0 || s.ChoiceTime == 0 || again.Choices != s.Choices {
		t.Errorf("%d choices took %v of a processor, %d an hour later", s.Choices, s.ChoiceTime, again.Choices)
	}
	if s.Packed.Slabs == 0 || s.Packed.Used >= s.Packed.Plain || s.RAM.Others != s.Packed.Used {
		t.Errorf("packed: %+v, of memory %+v", s.Packed, s.RAM)
	}
}

// What is pinned stays while something else goes through all of memory.
func TestPin(t *testing.T) { synctest.Test(t, testPin) }

func testPin(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1, Policy: "lru"})
	mine := &testSeries{id: 1, steps: 8, size: 1 << 20, last: true}
	scan := &testSeries{id: 2, steps: 100, size: 1 << 20, last: true}
	k.Pin(mine.ID(), policy.RAM)
	readEpoch(t, k, mine, time.Millisecond)
	readEpoch(t, k, scan, time.Millisecond)
	if fills := readEpoch(t, k, mine, time.Millisecond); fills != 0 {
		t.Errorf("%d of %d pinned batches were gone", fills, mine.steps)
	}
	k.Pin(mine.ID(), policy.Source)
	time.Sleep(2 * time.Second) // for a choice
	readEpoch(t, k, scan, time.Millisecond)
	if fills := readEpoch(t, k, mine, time.Millisecond); fills == 0 {
		t.Error("batches stayed that were pinned no more")
	}
}

func TestPolicies(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 1})
				if err := k.SetPolicy(name); err != nil || k.Policy() != name {
					t.Fatalf("set policy %s: %v, it is %s", name, err, k.Policy())
				}
				p := &testSeries{id: 1, steps: 24, size: 1 << 20, fail: slow(20 * time.Millisecond)}
				for range 2 {
					readEpoch(t, k, p, 30*time.Millisecond)
				}
			})
		})
	}
	k := newCache(t, cache.Config{})
	if err := k.SetPolicy("best"); !errors.Is(err, meta.ErrInvalid) || k.Policy() != "mckp" {
		t.Errorf("set policy best: %v, it is %s", err, k.Policy())
	}
}
