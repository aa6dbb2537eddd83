package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// scattered is a step of a series far from all before it, so that the cache does not foresee it.
func scattered(i, steps uint64) uint64 { return i * 37 % steps }

// copying is a cache whose memory has room for sixteen batches, with a disk for what goes
// from there.
func copying(t *testing.T, policy string) *cache.Cache {
	return newCache(t, cache.Config{
		RAMBytes: 16 << 20, Workers: 1, Policy: policy, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}},
	})
}

// An open that waits does not wait for others to be written to a disk: what was not copied
// in time goes without, and is counted.
func TestAnOpenThatWaitsCopiesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, "all-disk")
		synctest.Wait()
		k.HoldMover()
		p := &testSeries{id: 1, steps: 101, size: 1 << 20, noise: true, last: true, asked: true}
		for i := range uint64(32) {
			open(t, k, p, 0, scattered(i, p.steps)).Release()
		}
		if s := k.Stats(); s.NVMe[0].Slabs > 0 || s.Late > 0 || s.CopiedLate < 16 {
			t.Errorf("%d batches were written, %d of them late, and %d of %d went without", s.NVMe[0].Slabs, s.Late, s.CopiedLate, s.Evicted)
		}
	})
}

// Nor does it wait for what is packed to be written, which goes as what else is there is open.
func TestAnOpenThatWaitsWritesNothingPacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &testSeries{id: 1, steps: 96, size: 512 << 10, quarter: true, fail: slow(50 * time.Millisecond)}
		k := packedAway(t, 17<<20, cache.Config{RAMBytes: 17 << 20, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 128 << 20}}}, p)
		synctest.Wait()
		k.HoldMover()
		k.HoldChoices()
		p.asked = true // what no open waits for may be written, so that nothing else is filled
		n, before := in(k, p), k.Stats()
		other := &testSeries{id: 2, steps: 101, size: 512 << 10, noise: true, last: true, asked: true}
		for i := range uint64(24) {
			defer open(t, k, other, 0, scattered(i, other.steps)).Release()
		}
		s, after := k.Stats(), in(k, p)
		gone := n["packed"] - after["packed"]
		if late := s.CopiedLate - before.CopiedLate; gone < 24 || late < uint64(gone) || s.Late > before.Late || s.NVMe[0].Slabs > before.NVMe[0].Slabs {
			t.Errorf("of %v there are %v: %d went without, %d batches were written, %d of them late", n, after, late, s.NVMe[0].Slabs-before.NVMe[0].Slabs, s.Late-before.Late)
		}
	})
}

// What was copied in time goes before what was not, though that would have gone first: of
// a series at random half was copied, and opened again after the other half, which was not.
func TestWhatIsElsewhereTooGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, "all-disk")
		p := &testSeries{id: 1, steps: 101, size: 1 << 20, noise: true, last: true}
		opens := func(from, to uint64) {
			for i := from; i < to; i++ {
				open(t, k, p, 0, scattered(i, p.steps)).Release()
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
		}
		opens(0, 7)
		copied := k.Stats().NVMe[0].Slabs
		k.HoldMover()
		opens(7, 14)
		opens(0, 7)
		opens(14, 18)
		if s := k.Stats(); copied < 7 || s.CopiedLate > 0 || s.Evicted < 4 || s.NVMe[0].Slabs != copied {
			t.Errorf("%d batches were copied; of %d that made way then %d were not", copied, s.Evicted, s.CopiedLate)
		}
	})
}

// What is pinned is not lost for an open that waits: that waits until it was copied.
func TestWhatIsPinnedIsNotLostForAnOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, "all-disk")
		p, other := &testSeries{id: 1, steps: 16, size: 1 << 20, noise: true, last: true}, &testSeries{id: 2, steps: 101, size: 1 << 20, noise: true, last: true}
		synctest.Wait()
		letGo := k.HoldMover()
		k.Pin(p.ID(), policy.Disk)
		for i := range p.steps {
			open(t, k, p, 0, i*7%p.steps).Release()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint64(4) {
				open(t, k, other, 0, scattered(i, other.steps)).Release()
			}
		}()
		time.Sleep(time.Second)
		letGo()
		<-done
		if n := in(k, p); n[""] > 0 {
			t.Errorf("%v of what is pinned", n)
		}
	})
}

// What is pinned to memory stays there from when it is pinned, though a disk has it too,
// and nothing else that could make way for opens that wait was copied.
func TestWhatIsPinnedToMemoryStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, "all-disk")
		p, other := &testSeries{id: 1, steps: 8, size: 1 << 20, noise: true, last: true}, &testSeries{id: 2, steps: 101, size: 1 << 20, noise: true, last: true}
		for i := range p.steps {
			open(t, k, p, 0, i*5%p.steps).Release()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := k.Stats().NVMe[0].Slabs; n < int(p.steps) {
			t.Fatalf("%d batches are on the disk", n)
		}
		k.HoldMover()
		k.HoldChoices()
		k.Pin(p.ID(), policy.RAM)
		for i := range uint64(32) {
			open(t, k, other, 0, scattered(i, other.steps)).Release()
		}
		if n := in(k, p); n["ram"] != int(p.steps) {
			t.Errorf("%v of what is pinned to memory", n)
		}
	})
}

// A chunk that is fetched for a batch ahead of its reader has no open that waits for it.
func TestAChunkAheadIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, "")
		synctest.Wait()
		k.HoldMover()
		old := &testSeries{id: 1, steps: 101, size: 1 << 20, noise: true, last: true}
		for i := range uint64(16) {
			open(t, k, old, 0, scattered(i, old.steps)).Release()
		}
		p := &piecewise{
			&testSeries{id: 2, steps: 64, size: 1 << 20, noise: true, last: true},
			&testSeries{id: 3, steps: 64, size: 1 << 20, noise: true, share: true, fail: slow(time.Millisecond)},
			false,
		}
		lost := uint64(0)
		for step := range uint64(8) {
			time.Sleep(20 * time.Millisecond)
			open(t, k, p, 0, step).Release()
			if step == 2 {
				lost = k.Stats().CopiedLate
			}
		}
		if s := k.Stats(); s.CopiedLate > lost || s.Late == 0 {
			t.Errorf("%d batches went without a copy after %d, for a fill that no reader waited for; %d were copied", s.CopiedLate, lost, s.Late)
		}
	})
}
