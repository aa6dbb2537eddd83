package cache_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/test/eventually"
)

// A cyclic scan of more than memory holds: a part of it stays, the rest goes by.
func TestCycle(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, MaxAhead: 2})
	p := &testSeries{steps: 64, size: 1 << 20}
	const epochs = 5
	for range epochs {
		for step := range p.steps {
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
	}
	total := 0
	for step := range p.steps {
		total += p.filled(0, step)
	}
	// Of 32 slabs a few are on their way in or out.
	if most := int(p.steps) + (epochs-1)*int(p.steps-32+6); total > most {
		t.Errorf("%d fills in %d epochs, want %d at most", total, epochs, most)
	}
}

// Those who open at random beside a job take turns with it: all that a job needs
// half of the one worker's time for is ready when it comes.
func TestStray(t *testing.T) {
	for _, row := range []struct {
		name string
		ram  int64
		size int64 // of a batch; the job reads 200, the others two to the 20
	}{
		{"room for all that is read", 64 << 20, 100 << 10},
		{"room for a sixth of the job", 16 << 20, 512 << 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStray(t, row.ram, row.size) })
		})
	}
}

func testStray(t *testing.T, ram, size int64) {
	k := newCache(t, cache.Config{RAMBytes: ram, Workers: 1})
	source := make(chan struct{}, 1) // it gives one at a time, so more at a time give no more
	slow := func(uint64, uint64) error {
		source <- struct{}{}
		time.Sleep(time.Millisecond)
		<-source
		return nil
	}
	job := &testSeries{id: 1, steps: 200, size: size, fail: slow}
	other := &testSeries{id: 2, steps: 1 << 20, size: size, fail: slow}
	ctx, stop := context.WithCancel(t.Context())
	var strays sync.WaitGroup
	for i := range uint64(4) {
		strays.Go(func() {
			for step := i * 7919; ctx.Err() == nil; step = (step*2654435761 + 1) % other.steps {
				if s, err := k.Open(ctx, nil, as(other), 0, step, other.Key(0, step)); err == nil {
					s.Release()
				}
			}
		})
	}
	waited := 0
	for step := range job.steps {
		time.Sleep(3 * time.Millisecond)
		if _, ok := k.Contains(job.Key(3, step)); !ok && step > 10 {
			waited++
		}
		open(t, k, job, 3, step).Release()
	}
	stop()
	strays.Wait()
	if n := int(k.Stats().Fills); waited > 0 || n < 300 {
		t.Errorf("%d of %d batches of the job were not ready; %d fills, want 300 with those for others", waited, job.steps, n)
	}
}

// Batches that no other epoch has make way for those that follow, and their memory is
// used again as it is.
func TestOnce(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 64 << 20})
	p := &testSeries{steps: 200, size: 1 << 20, once: true, last: true}
	for step := range p.steps {
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
	}
	if s := k.Stats(); s.RAM.Used > 64<<20 || s.Recycled < 100 {
		t.Errorf("%d bytes used and %d slabs recycled for an epoch of %d", s.RAM.Used, s.Recycled, 200<<20)
	}
}

// A batch larger than memory is served from NVMe; what memory gives up goes
// there, and a cache that starts later finds it, checks it, and refuses what
// was damaged.
func TestNVMe(t *testing.T) {
	dir := t.TempDir()
	config := cache.Config{RAMBytes: 16 << 20, Policy: "all-disk", NVMe: []disks.Dir{{Path: dir, Bytes: 256 << 20}}}
	k := newCache(t, config)
	large := &testSeries{id: 1, steps: 2, size: 20 << 20}
	s := open(t, k, large, 0, 0)
	if s.Tier() != "nvme" {
		t.Errorf("a batch larger than ram is in %s", s.Tier())
	}
	check(t, s, large, 0, 0)
	s.Release()

	small := &testSeries{id: 2, steps: 64, size: 1 << 20}
	for step := range small.steps {
		s := open(t, k, small, 0, step)
		check(t, s, small, 0, step)
		s.Release()
		eventually.True(t, "what is to go is written", func() bool { return uint64(k.Stats().NVMe[0].Slabs)+8 > step })
	}
	if n := k.Stats().NVMe[0].Slabs; n < 20 {
		t.Errorf("%d slabs on nvme, want most of what ram could not hold", n)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}

	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var damaged string
	for _, n := range names {
		if len(n.Name()) > 40 && damaged == "" && n.Name()[:2] == "02" {
			damaged = dir + "/" + n.Name()
			f, _ := os.OpenFile(damaged, os.O_RDWR, 0)
			f.WriteAt([]byte{99}, 12345)
			f.Close()
		}
	}
	os.WriteFile(dir+"/.part-7", []byte("half"), 0600)

	k = newCache(t, config)
	before := k.Stats()
	again := &testSeries{id: 2, steps: 64, size: 1 << 20}
	for step := range again.steps {
		s := open(t, k, again, 0, step)
		check(t, s, again, 0, step)
		s.Release()
	}
	if n := k.Stats().Restored; n < 19 {
		t.Errorf("%d slabs found again of %d", n, before.NVMe[0].Slabs)
	}
	if _, err := os.Stat(dir + "/.part-7"); err == nil {
		t.Error("an unfinished slab was left")
	}
	if n := k.Stats().NVMe[0].Damaged; damaged == "" || n != 1 {
		t.Errorf("%d slabs found damaged, want the one that was (%q)", n, damaged)
	}
}
