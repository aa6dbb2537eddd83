package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// A mapping that is kept for an hour, in memory and on disk, has its bytes at the
// end of it, counts all the while, and what it took is free a moment after it.
func TestMappedForAnHour(t *testing.T) {
	for _, tier := range []string{"ram", "nvme"} {
		t.Run(tier, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { mappedForAnHour(t, tier) })
		})
	}
}

func mappedForAnHour(t *testing.T, tier string) {
	const size = 1 << 20
	config := cache.Config{RAMBytes: 16 * size, Workers: 1}
	if tier == "nvme" {
		config.NVMe = []disks.Dir{{Path: t.TempDir(), Bytes: 24 * size}}
	}
	k := newCache(t, config)
	p := &testSeries{id: 1, steps: 60, size: size, noise: true}
	k.Pin(p.ID(), policy.Disk)
	readEpoch(t, k, p, time.Millisecond) // what memory gives up is on disk
	step := uint64(0)
	for in := ""; in != tier; step++ {
		if step == p.steps {
			t.Fatalf("no batch is in %s", tier)
		}
		in, _ = k.Contains(p.Key(0, step))
	}
	step--
	s := open(t, k, p, 0, step)
	m := mapped(t, s)
	s.Release()
	begin := time.Now()
	for epoch := byte(2); time.Since(begin) < time.Hour; epoch++ {
		readEpoch(t, k, &testSeries{id: epoch, steps: p.steps, size: size, noise: true}, 5*time.Second)
		st := k.Stats()
		used, budget := st.RAM.Used, st.RAM.Budget
		for _, d := range st.NVMe {
			used, budget = used+d.Used, budget+d.Budget
		}
		if tier == "ram" && st.RAM.Dying != size || used > budget {
			t.Fatalf("%v: %d of memory dying, %d used of %d", time.Since(begin), st.RAM.Dying, used, budget)
		}
		if !p.has(m, 0, step, 0) {
			t.Fatalf("%v: the mapping has other bytes", time.Since(begin))
		}
	}
	unix.Munmap(m)
	readEpoch(t, k, &testSeries{id: 255, steps: p.steps, size: size}, time.Second)
	if d := k.Stats().RAM.Dying; d != 0 {
		t.Errorf("%d bytes are dying still", d)
	}
}

// A cache that begins where another ended in the middle of an epoch has at once
// what that had on disk, and brings the rest.
func TestRestartInTheMiddleOfAnEpoch(t *testing.T) {
	config := cache.Config{RAMBytes: 16 << 20, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}}
	p := &testSeries{id: 1, steps: 100, size: 1 << 20, noise: true} // else all of it is kept packed, in memory
	k := newCache(t, config)
	k.Pin(p.ID(), policy.Disk)
	readEpoch(t, k, p, 0)
	half := p.steps / 2
	for step := range half {
		open(t, k, p, 0, step).Release()
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = newCache(t, config)
	there := uint64(0)
	for step := half; step < p.steps; step++ {
		if tier, ok := k.Contains(p.Key(0, step)); ok && tier == "nvme" {
			there++
		}
	}
	for step := half; step < p.steps; step++ {
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
	}
	awaitQuiet(k)
	// What is made ready ahead of the epoch's end may be what was in memory alone.
	if s := k.Stats(); there < half*2/3 || s.Fills > p.steps-there || s.Restored < there {
		t.Errorf("%d of %d batches were there at once, %d were restored and %d filled", there, p.steps-half, s.Restored, s.Fills)
	}
}
