package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
	"rankfs/meta"
)

// A batch that is made ready by hand is there. It takes the place of batches that no reader
// will open, and not of those that one will come to.
func TestPrepare(t *testing.T) { synctest.Test(t, testPrepare) }

func testPrepare(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1})
	job := &testSeries{id: 1, steps: 20, size: 1 << 20}
	old := &testSeries{id: 2, steps: 30, size: 1 << 20, last: true}
	warm := &testSeries{id: 3, steps: 30, size: 1 << 20, last: true}
	readEpoch(t, k, old, time.Millisecond)
	readEpoch(t, k, job, time.Second)
	ready := uint64(0)
	var err error
	for err == nil && ready < warm.steps {
		time.Sleep(time.Second)
		if err = k.Prepare(t.Context(), as(warm), 0, ready); err == nil {
			ready++
		}
	}
	if ready < 6 || ready > 12 || !errors.Is(err, meta.ErrNoSpace) {
		t.Errorf("%d batches were made ready in 32 MiB of which a job will use 20: %v", ready, err)
	}
	for step := range ready {
		if _, ok := k.Contains(warm.Key(0, step)); !ok {
			t.Errorf("batch %d is gone", step)
		}
	}
	if fills := readEpoch(t, k, job, time.Second); fills > 0 {
		t.Errorf("%d batches of the job were filled again", fills)
	}
}

func TestDiscard(t *testing.T) {
	k := newCache(t, cache.Config{})
	p := &testSeries{id: 1, steps: 2, size: 1 << 20, last: true}
	held := open(t, k, p, 0, 0)
	open(t, k, p, 0, 1).Release()
	if k.Discard(p.Key(0, 0)) || !k.Discard(p.Key(0, 1)) {
		t.Error("discarded what is held, or not what is not")
	}
	if _, ok := k.Contains(p.Key(0, 1)); ok {
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
	p := &testSeries{id: 1, steps: 60, size: 1 << 20}
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

// What others have of the budget slabs make way for at once, but for what is held, and
// for so much that a batch can be served; it is no more than memory may take anyway.
func TestYield(t *testing.T) { synctest.Test(t, testYield) }

func testYield(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	p := &testSeries{id: 1, steps: 60, size: 1 << 20}
	readEpoch(t, k, p, time.Second)
	held := open(t, k, p, 0, 30)
	has := func(want int64) {
		t.Helper()
		if s := k.Stats().RAM; s.Used > want || s.Budget != want {
			t.Errorf("%d bytes used of %d, want %d", s.Used, s.Budget, want)
		}
	}
	k.Yield(40 << 20)
	has(24 << 20)
	k.Allow(20<<20, true)
	has(20 << 20)
	k.Allow(64<<20, true)
	has(24 << 20)
	k.Yield(64 << 20)
	has(16 << 20)
	check(t, held, p, 0, 30)
	held.Release()
	k.Yield(0)
	readEpoch(t, k, p, time.Second)
	if fills := readEpoch(t, k, p, time.Second); fills > 0 {
		t.Errorf("%d batches were filled again though all fit", fills)
	}
}

// A batch for which others have left no room is waited for, as they may give some back; when
// they have not, its open says so, and not that ranks hold anything.
func TestNoRoomBesideOthers(t *testing.T) { synctest.Test(t, testNoRoomBesideOthers) }

func testNoRoomBesideOthers(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1})
	p := &testSeries{id: 1, steps: 2, size: 30 << 20}
	k.Yield(40 << 20)
	_, err := k.Open(t.Context(), nil, as(p), 0, 0, p.Key(0, 0))
	if want := "30MiB is more than the 24MiB of ram that is left"; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("an open failed with %v, want %q", err, want)
	}
	time.AfterFunc(time.Minute, func() { k.Yield(0) })
	open(t, k, p, 0, 1).Release()
}

// On a disk, too, nothing makes way that a reader comes to, and no slab stays
// open.
func TestPrepareOnDisk(t *testing.T) { synctest.Test(t, testPrepareOnDisk) }

func testPrepareOnDisk(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 1, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 48 << 20}}})
	job := &testSeries{id: 1, steps: 40, size: 1 << 20}
	warm := &testSeries{id: 2, steps: 80, size: 1 << 20, last: true}
	readEpoch(t, k, job, time.Second)
	readEpoch(t, k, job, time.Second)
	kept := k.Holdings()[job.ID()]
	ready, err := uint64(0), error(nil)
	for err == nil && ready < warm.steps {
		if err = k.Prepare(t.Context(), as(warm), 0, ready); err == nil {
			ready++
		}
	}
	h := k.Holdings()[warm.ID()]
	if !errors.Is(err, meta.ErrNoSpace) || ready == 0 || uint64(h.Batches[policy.RAM]+h.Batches[policy.Disk]) < ready {
		t.Errorf("%d batches were made ready, %+v are there: %v", ready, h, err)
	}
	for _, why := range []string{"of the 16MiB of ram nothing may make way", "of the nvme budget of 48MiB nothing may make way"} {
		if said := fmt.Sprint(err); strings.Count(said, why) != 1 || strings.Contains(said, "any tier") {
			t.Errorf("no rank holds anything, and it is said: %s\nwant once: %s", said, why)
		}
	}
	if now := k.Holdings()[job.ID()]; now.Batches[policy.Disk] < kept.Batches[policy.Disk] {
		t.Errorf("the job had %+v, and has %+v", kept, now)
	}
	gone, held := k.DiscardAll(warm.ID())
	if left := k.Holdings()[warm.ID()]; uint64(gone) < ready || held > 0 || left.Total() != 0 {
		t.Errorf("%d discarded, %d held, %+v left", gone, held, left)
	}
}

// What is read once stays if it is pinned, and no longer.
func TestPinOfWhatIsReadOnce(t *testing.T) { synctest.Test(t, testPinOfWhatIsReadOnce) }

func testPinOfWhatIsReadOnce(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1})
	once := &testSeries{id: 1, steps: 10, size: 1 << 20, once: true, last: true}
	others := &testSeries{id: 2, steps: 60, size: 1 << 20}
	readEpoch(t, k, once, time.Second)
	k.Pin(once.ID(), policy.RAM)
	readEpoch(t, k, others, time.Second)
	readEpoch(t, k, once, time.Second)
	readEpoch(t, k, others, time.Second)
	if fills := readEpoch(t, k, once, time.Second); fills > 0 {
		t.Errorf("%d pinned batches were filled again", fills)
	}
	k.Pin(once.ID(), policy.Source)
	readEpoch(t, k, others, time.Second)
	if h := k.Holdings()[once.ID()]; h.Batches[policy.RAM] > 1 {
		t.Errorf("no longer pinned: %+v", h)
	}
}

// What is pinned on a disk stays there while much else comes and goes.
func TestPinOnDisk(t *testing.T) { synctest.Test(t, testPinOnDisk) }

func testPinOnDisk(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 1, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 32 << 20}}})
	mine := &testSeries{id: 1, steps: 20, size: 1 << 20, last: true}
	others := &testSeries{id: 2, steps: 100, size: 1 << 20}
	for step := range mine.steps {
		if err := k.Prepare(t.Context(), as(mine), 0, step); err != nil {
			t.Fatal(err)
		}
	}
	k.Pin(mine.ID(), policy.Disk)
	for range 3 {
		readEpoch(t, k, others, time.Second)
	}
	for step := range mine.steps {
		if _, ok := k.Contains(mine.Key(0, step)); !ok {
			t.Errorf("batch %d is gone", step)
		}
	}
}
