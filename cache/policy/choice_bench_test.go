package policy_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"rankfs/cache/policy"
)

// million is a problem of a million partitions, of all sizes, a fifth of which
// fit into memory and two fifths on disk.
func million(n int) *policy.Problem {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &policy.Problem{}
	for i := range n {
		mib := 4 * math.Exp(0.5*rng.NormFloat64())
		wait := mib * 0.010 * math.Exp(0.5*rng.NormFloat64())
		p.Items = append(p.Items, policy.Item{
			Bytes: [policy.Levels]int64{0, int64(mib * slab), int64(mib * 0.4 * slab), int64(mib * slab)},
			Wait:  [policy.Levels]float64{wait, mib * 0.003, mib * 0.002, 0},
			Move:  [policy.Levels]float64{0, mib * 0.001, mib * 0.005, 0},
			Now:   policy.Level(rng.IntN(int(policy.Levels))), Series: int32(i % 3), Group: -1, Job: -1, Last: -float64(i),
		})
	}
	for _, i := range rng.Perm(n) {
		p.Uses = append(p.Uses, policy.Use{Item: int32(i), At: float64(len(p.Uses)) / 1000})
	}
	p.Memory, p.Disk = size(p, policy.RAM)/5, size(p, policy.RAM)*2/5
	return p
}

// cpu is the processor time that this process has used: others run beside it.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkChoice(b *testing.B) {
	p := million(1_000_000)
	jobs := million(1_000_000)
	for i := range jobs.Items {
		jobs.Items[i].Job = int32(i % 4)
	}
	equal := million(1_000_000)
	for i := range equal.Items {
		it := &equal.Items[i]
		it.Bytes, it.Wait, it.Move = equal.Items[0].Bytes, equal.Items[0].Wait, equal.Items[0].Move
	}
	equal.Memory, equal.Disk = size(equal, policy.RAM)/5, size(equal, policy.RAM)*2/5
	twins := million(1_000_000) // two readers, one through the first half and one through the second
	for i := range twins.Items {
		twins.Items[i] = equal.Items[0]
		twins.Items[i].Last = -1
		twins.Uses[i].Item = int32(i%2*500_000 + i/2)
	}
	twins.Memory, twins.Disk = equal.Memory, equal.Disk
	for _, test := range []struct {
		name    string
		by      string
		problem *policy.Problem
	}{{"mckp", "mckp", p}, {"mckp of equal items", "mckp", equal}, {"mckp of 4 jobs", "mckp", jobs}, {"mckp of 2 readers", "mckp", twins}, {"interval", "interval", p}, {"dp25", "dp25", p}, {"lru", "lru", p}} {
		b.Run(test.name, func(b *testing.B) {
			by := newPolicy(b, test.by)
			levels := make([]policy.Level, len(p.Items))
			by.Choose(test.problem, levels)
			start := cpu()
			for b.Loop() {
				by.Choose(test.problem, levels)
			}
			b.ReportMetric((cpu()-start).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// Worth and a heap of what is kept, at each use: 10,000 uses a second may take
// 2,000 ns each for 2 % of a core.
func BenchmarkWorth(b *testing.B) {
	const n = 100_000
	p := million(n)
	for _, name := range []string{"mckp", "interval", "lru"} {
		b.Run(name, func(b *testing.B) {
			by := newPolicy(b, name)
			levels := make([]policy.Level, n)
			by.Choose(p, levels)
			var kept worths
			for i := range n / 5 {
				p.Items[i].Now = policy.RAM
				heap.Push(&kept, worth{int32(i), by.Worth(&p.Items[i], float64(i))})
			}
			start, k := cpu(), 0
			for b.Loop() {
				gone := heap.Pop(&kept).(worth)
				k = (k + 7919) % n
				p.Items[gone.item].Last = float64(k)
				heap.Push(&kept, worth{gone.item, by.Worth(&p.Items[gone.item], float64(k)/1000)})
			}
			b.ReportMetric(float64((cpu()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
