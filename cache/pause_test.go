package cache_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/cache/trace/tracetest"
	"rankfs/test/eventually"
)

// asked is a series that is asked of each batch in turn by a goroutine that looks at all of them.
type asked struct {
	quiet
	find *gate
}

func (p *asked) Find(k cache.Key) (rank, step uint64, ok bool) {
	p.find.pass()
	return p.quiet.Find(k)
}

// A gate finds out whether another goroutine has the lock of a cache before so many
// batches were looked at: it waits for it to come, and is slow until it is
// through.
type gate struct {
	armed, through atomic.Bool
	start, came    chan struct{}
	passed         int // with the lock, as through is looked at
	early          bool
	most           int
}

func newGate(most int) *gate {
	return &gate{start: make(chan struct{}), came: make(chan struct{}), most: most}
}

func (g *gate) pass() {
	if !g.armed.Load() || g.passed == g.most {
		return
	}
	if g.passed == 0 {
		close(g.start)
		<-g.came
		time.Sleep(50 * time.Millisecond)
	}
	g.passed++
	if g.early = g.through.Load(); !g.early && g.passed%64 == 0 {
		time.Sleep(100 * time.Millisecond)
	}
	if g.early {
		g.passed = g.most
	}
}

// need has a goroutine need the lock as soon as a batch is looked at.
func (g *gate) need(k *cache.Cache) (done chan struct{}) {
	done = make(chan struct{})
	g.armed.Store(true)
	go func() {
		defer close(done)
		<-g.start
		close(g.came)
		k.Stats()
		g.through.Store(true)
	}()
	return done
}

// However many batches there are, the lock is not kept while levels are chosen:
// neither to list the batches, for which the series is asked first if its reader is foretold,
// nor to put them in order, for which it is asked first if not.
func TestChoicesGiveWay(t *testing.T) {
	for _, row := range []struct {
		name     string
		foretold bool
	}{{"listed", true}, {"put in order", false}} {
		t.Run(row.name, func(t *testing.T) {
			const many = 3000
			k := newCache(t, cache.Config{RAMBytes: 64 << 20, MaxAhead: 1})
			p := &asked{quiet{steps: many + 9, size: 4096}, newGate(many - 8)}
			for step := range uint64(many) {
				open(t, k, p, 0, step).Release()
			}
			if row.foretold {
				k.Learn(learnt(t, tracetest.Ways["strided"](64, 4), 64))
				open(t, k, p, 0, 0).Release()
			}
			awaitQuiet(k)
			choices := k.Stats().Choices
			done := p.find.need(k)
			k.Allow(64<<20, true) // which has it choose
			eventually.True(t, "a choice is made", func() bool { return k.Stats().Choices > choices })
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("no choice was made")
			}
			if s := k.Stats(); s.RAM.Slabs < many {
				t.Errorf("%d batches are left", s.RAM.Slabs)
			}
			if !p.find.early {
				t.Errorf("a goroutine that comes while batches are %s waits for all of them", row.name)
			}
		})
	}
}

// How long opens of batches that are ready take beside choices of levels, with very many in
// memory: go test -run - -bench OpenBesideChoices -benchtime 400000x ./cache.
func BenchmarkOpenBesideChoices(b *testing.B) {
	const many = 200_000
	config := cache.Config{RAMBytes: many*4096 + 256<<20}
	k := newCache(b, config)
	p := &quiet{steps: many / 8, size: 4096}
	for step := range uint64(many) {
		open(b, k, p, step%8, step/8).Release()
	}
	choices := k.Stats().Choices
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for i := range b.N {
		if i%20_000 == 0 {
			k.Allow(config.RAMBytes, true) // which has it choose
		}
		begin := time.Now()
		open(b, k, p, uint64(i%8), uint64(i/8)%p.steps).Release()
		took = append(took, time.Since(begin))
	}
	b.StopTimer()
	slices.Sort(took)
	for name, part := range map[string]float64{"p50": 0.5, "p99": 0.99, "p99.99": 0.9999, "longest": 1} {
		b.ReportMetric(float64(took[int(part*float64(len(took)-1))].Microseconds()), name+"-us")
	}
	b.ReportMetric(float64(k.Stats().Choices-choices), "choices")
}
