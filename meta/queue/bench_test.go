package queue_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"rankfs/meta/queue"
)

// BenchmarkNext is what the leader pays for a unit: Next, Began and Finished,
// with all schedules that fall due, from the first unit to the last. The dearest
// of the calls that made one is reported beside the mean.
func BenchmarkNext(b *testing.B) {
	for _, size := range []struct{ units, readers int }{{16_384, 128}, {1_000_000, 1_000}} {
		for _, policy := range []queue.Policy{queue.PolicyFlow, queue.PolicyProbability} {
			b.Run(fmt.Sprintf("%v/%dx%d", policy, size.units, size.readers), func(b *testing.B) {
				benchmarkNext(b, policy, size.units, size.readers)
			})
		}
	}
}

func benchmarkNext(b *testing.B, policy queue.Policy, units, readers int) {
	random := rand.New(rand.NewPCG(1, 2))
	hold := make([][]int, units)
	for unit := range hold {
		hold[unit] = []int{random.IntN(readers), random.IntN(readers), random.IntN(readers)}
	}
	s, err := queue.New(units, holders(hold), policy, 1)
	if err != nil {
		b.Fatal(err)
	}
	var events turns
	begin := func() {
		events = events[:0]
		var readers []queue.History
		for w := range readers {
			readers = append(readers, queue.History{Reader: w, Node: w})
			heap.Push(&events, turn{reader: w, unit: -1})
		}
		if err := s.Restore(0, make([]uint64, (units+63)/64), nil, readers); err != nil {
			b.Fatal(err)
		}
	}
	begin()
	var spent, dearest time.Duration
	taken := 0
	schedules := s.Changes()
	for range b.N {
		if len(events) == 0 {
			b.StopTimer()
			begin()
			b.StartTimer()
		}
		t := heap.Pop(&events).(turn)
		start := time.Now()
		if t.unit >= 0 {
			s.Finished(t.at, t.reader, t.unit)
		}
		advice, err := s.Next(t.at, t.reader)
		if err != nil {
			b.Fatal(err)
		}
		if advice.Verdict == queue.Take {
			s.Began(t.at, t.reader, advice.Unit)
			taken++
		}
		took := time.Since(start)
		spent += took
		if schedules != s.Changes() {
			schedules, dearest = s.Changes(), max(dearest, took)
		}
		switch t.unit = advice.Unit; advice.Verdict {
		case queue.Take:
			t.at += time.Duration(math.Exp(0.3*random.NormFloat64()) * (0.5 + float64(t.reader)/float64(readers)) * float64(time.Second))
			heap.Push(&events, t)
		case queue.Wait:
			t.at, t.unit = advice.Until, -1
			heap.Push(&events, t)
		}
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(taken), "ns/unit")
	b.ReportMetric(float64(b.N)/float64(taken), "calls/unit")
	b.ReportMetric(float64(dearest.Microseconds())/1000, "ms/dearest")
}

type turn struct {
	at           time.Duration
	reader, unit int
}

type turns []turn

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].at < t[j].at }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)        { *t = append(*t, x.(turn)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
