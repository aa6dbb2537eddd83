package cache

import (
	"math"
	"testing"
	"time"

	"rankfs/cache/disks"
	"rankfs/cache/pack"
	"rankfs/cache/policy"
)

// What a policy is told of the work to write a slab to a disk is what writing
// took, and what there was to be written was measured.
func TestWritesAreMeasured(t *testing.T) {
	move := func(writes rate) float64 {
		var i policy.Item
		describe(&i, 64<<20, pack.Measure{}, &[policy.Levels]cost{}, writes, true)
		return i.Move[policy.Disk]
	}
	slow := rate{}
	slow.add(8<<20, time.Second)
	if got, want := move(slow), 8.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("64 MiB at 8 MiB a second are %v seconds of work, want %v", got, want)
	}
	if got, want := move(rate{}), 1.0/16; got != want {
		t.Errorf("before anything was written: %v seconds, want %v", got, want)
	}
	k, err := New(Config{RAMBytes: minRAM, NVMe: []disks.Dir{{Path: t.TempDir(), Bytes: 8 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := k.ram.take(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	k.store.write(&entry{batch: batch{form: form{ram: f, size: 1 << 20}}}, f.mem)
	k.ram.retire(f)
	k.mu.Lock()
	measured := k.mu.rates.writes.perSecond
	k.mu.Unlock()
	if measured == 0 {
		t.Error("a slab was written, and it was not measured")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}
