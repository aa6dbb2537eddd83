package cache_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/disks"
	"rankfs/cache/policy"
)

// in counts the batches of the first rank of a series by the tier they would be opened from.
func in(k *cache.Cache, p *testSeries) map[string]int {
	n := make(map[string]int)
	for step := range p.steps {
		tier, _ := k.Contains(p.Key(0, step))
		n[tier]++
	}
	return n
}

// readOn opens the rest of an epoch, checked, and says how many of the batches came
// from the source, from a disk or were unpacked.
func readOn(t *testing.T, k *cache.Cache, p *testSeries, from uint64) string {
	t.Helper()
	b := k.Stats()
	for step := from; step < p.steps; step++ {
		time.Sleep(10 * time.Millisecond)
		s := open(t, k, p, 0, step)
		check(t, s, p, 0, step)
		s.Release()
	}
	s := k.Stats()
	return fmt.Sprintf("filled %d, restored %d, unpacked %d", s.Fills-b.Fills, s.Restored-b.Restored, s.Unpacked-b.Unpacked)
}

const atOnce = "filled 0, restored 0, unpacked 0"

// What is to be in memory, as it is or packed, and lies on a disk or packed is there
// before it is opened, and what is packed goes to a disk that was chosen for it before
// it is given up; nothing of that comes from the source.
func TestConvert(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"disk to memory":        testDiskToMemory,
		"disk to packed":        testDiskToPacked,
		"packed to memory":      testPackedToMemory,
		"packed to disk":        testPackedToDisk,
		"packed victim to disk": testPackedVictim,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func testDiskToMemory(t *testing.T) {
	dirs := []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}
	p := &testSeries{id: 1, steps: 32, size: 1 << 20, noise: true, fail: slow(50 * time.Millisecond)}
	k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 1, Policy: "all-disk", NVMe: dirs})
	readEpoch(t, k, p, 10*time.Millisecond)
	time.Sleep(5 * time.Second) // what memory has is written
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = newCache(t, cache.Config{RAMBytes: 64 << 20, Workers: 1, Policy: "all-ram", NVMe: dirs})
	n := in(k, p)
	for step := range uint64(4) {
		time.Sleep(10 * time.Millisecond)
		open(t, k, p, 0, step).Release()
	}
	time.Sleep(5 * time.Second)
	s := k.Stats()
	if after := in(k, p); n["nvme"] != 32 || after["ram"] < 30 || s.Fills > 0 || s.Converted < 20 {
		t.Errorf("%v of the batches before, %v when they were to be there: %d came from the source, %d were converted", n, after, s.Fills, s.Converted)
	}
	if got := readOn(t, k, p, 4); got != atOnce {
		t.Error(got)
	}
}

// What is pinned to be packed is, though it went to the disk before it was known how
// its dataset is packed.
func testDiskToPacked(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Workers: 1, Policy: "all-disk", NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}})
	p := &testSeries{id: 1, steps: 64, size: 1 << 20, fail: slow(50 * time.Millisecond)}
	readEpoch(t, k, p, 10*time.Millisecond)
	n := in(k, p)
	k.Pin(p.ID(), policy.Packed)
	begin(t, k, p, "mckp")
	after := k.Holdings()[p.ID()].Batches[policy.Packed]
	if n["nvme"] < 20 || after < 20 {
		t.Errorf("%v of the batches, and %d packed when they were pinned there", n, after)
	}
	before := k.Stats().Fills
	readOn(t, k, p, 4)
	if fills := k.Stats().Fills - before; fills > uint64(n[""]) {
		t.Errorf("%d batches came from the source, and %d were nowhere", fills, n[""])
	}
}

// packedAway has batches packed for which memory has no room as they are, until it
// is allowed all of its budget.
func packedAway(t *testing.T, allowed int64, c cache.Config, p *testSeries) *cache.Cache {
	t.Helper()
	c.Workers = 1
	k := newCache(t, c)
	k.Allow(allowed, true)
	if len(c.NVMe) > 0 { // there is no room on the disk meanwhile
		r, err := k.Reserve(t.Context(), c.NVMe[0].Bytes-4096, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
	}
	k.Pin(p.ID(), policy.Packed)
	defer k.Pin(p.ID(), policy.Source)
	for range 4 {
		readEpoch(t, k, p, 50*time.Millisecond)
	}
	if n := in(k, p); n["packed"] < int(p.steps)/4 || n[""] > int(p.steps)/16 {
		t.Fatalf("%v of the batches", n)
	}
	return k
}

// begin opens the first batches of another epoch, and waits until what is chosen then
// is done.
func begin(t *testing.T, k *cache.Cache, p *testSeries, policy string) {
	t.Helper()
	if err := k.SetPolicy(policy); err != nil {
		t.Fatal(err)
	}
	for step := range uint64(4) {
		time.Sleep(10 * time.Millisecond)
		open(t, k, p, 0, step).Release()
	}
	time.Sleep(5 * time.Second)
}

func testPackedToMemory(t *testing.T) {
	p := &testSeries{id: 1, steps: 64, size: 1 << 20, fail: slow(50 * time.Millisecond)}
	k := packedAway(t, 32<<20, cache.Config{RAMBytes: 96 << 20}, p)
	k.Allow(96<<20, true)
	begin(t, k, p, "all-ram")
	if n := in(k, p); n["ram"] < 60 {
		t.Errorf("%v of the batches", n)
	}
	if got := readOn(t, k, p, 4); got != atOnce {
		t.Error(got)
	}
}

func testPackedToDisk(t *testing.T) {
	p := &testSeries{id: 1, steps: 64, size: 1 << 20, fail: slow(50 * time.Millisecond)}
	k := packedAway(t, 32<<20, cache.Config{RAMBytes: 32 << 20, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}}, p)
	begin(t, k, p, "all-disk")
	if n := k.Holdings()[p.ID()].Batches[policy.Disk]; n < 60 {
		t.Errorf("%d batches were on the disk when they were to be there", n)
	}
}

func testPackedVictim(t *testing.T) {
	p := &testSeries{id: 1, steps: 128, size: 1 << 20, quarter: true, fail: slow(50 * time.Millisecond)}
	k := packedAway(t, 44<<20, cache.Config{RAMBytes: 44 << 20, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}}}, p)
	n := in(k, p)
	k.Allow(16<<20, true)
	after := in(k, p)
	if after["packed"] >= n["packed"] || after["nvme"] < 32 || after[""] > n[""]+4 {
		t.Errorf("%v of the batches, and with less memory %v", n, after)
	}
	before := k.Stats().Fills
	for step := range p.steps {
		if _, ok := k.Contains(p.Key(0, step)); ok {
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
	}
	if fills := k.Stats().Fills - before; fills > p.steps/16 {
		t.Errorf("%d batches came from the source", fills)
	}
}

// The batch that goes first is written to the disk before its room is needed, as long as the
// disk keeps up: a fill that needs the room has only to drop it.
func TestCopiedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{
			RAMBytes: 64 << 20, Workers: 1, Policy: "all-disk", NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 256 << 20}},
		})
		p := &testSeries{id: 1, steps: 128, size: 1 << 20, noise: true}
		for step := range p.steps {
			time.Sleep(time.Millisecond)
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
		if n := in(k, p); k.Stats().Late > 4 || n[""] > 0 {
			t.Errorf("%v of the batches; %d were written only when their room was needed", n, k.Stats().Late)
		}
	})
}

// Batches that fit in memory, though with nothing to spare, stay there as they are: none is packed
// to make room for what is made ready ahead, as all of that is there.
func TestWhatFitsStays(t *testing.T) {
	for _, name := range []string{"mckp", "lru", "dp25"} {
		synctest.Test(t, func(t *testing.T) {
			p := &testSeries{id: 1, steps: 128, size: 128 << 10, quarter: true, fail: slow(5 * time.Millisecond)}
			k := newCache(t, cache.Config{RAMBytes: 16 << 20, Workers: 1, Policy: name})
			for range 4 {
				readEpoch(t, k, p, time.Millisecond)
			}
			begin(t, k, p, name)
			if s := k.Stats(); s.Fills != p.steps || s.Evicted+s.Converted > 0 {
				t.Errorf("%s: %d fills of %d batches, %d made way and %d moved", name, s.Fills, p.steps, s.Evicted, s.Converted)
			}
		})
	}
}
