package cache_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/test/eventually"
)

// Late keys are those of a series that knows them from a step on only when it is told, as
// one whose epoch has to be divided for them.
type lateKeys struct {
	testSeries
	from   uint64
	first  sync.Once
	asked  chan struct{}
	answer chan struct{}
	told   atomic.Bool
}

func newLateKeys(id byte) *lateKeys {
	return &lateKeys{testSeries: testSeries{id: id, steps: 4, size: 4096}, asked: make(chan struct{}), answer: make(chan struct{})}
}

func (p *lateKeys) Next() *cache.Series { return nil }

func (p *lateKeys) Key(rank, step uint64) cache.Key {
	if step >= p.from {
		p.first.Do(func() {
			close(p.asked)
			<-p.answer
			p.told.Store(true)
		})
	}
	return p.testSeries.Key(rank, step)
}

func (p *lateKeys) Known(rank, step uint64) (cache.Key, bool) {
	return p.testSeries.Key(rank, step), step < p.from || p.told.Load()
}

// A series that such a one follows.
type beforeLate struct {
	testSeries
	next *lateKeys
}

func (p *beforeLate) Next() *cache.Series { return as(p.next) }

// While a series finds a key, batches of others are opened, and then what it is the key of
// is made ready.
func TestOthersAreOpenedWhileASeriesFindsAKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(k *cache.Cache, p *lateKeys) // has the key of a series asked for, and returns when it is known
	}{
		{"for an input", func(k *cache.Cache, p *lateKeys) {
			if s, err := k.Input(context.Background(), as(p), 0, 0, true); err == nil {
				s.Release()
			}
		}},
		{"by hand", func(k *cache.Cache, p *lateKeys) { k.Prepare(context.Background(), as(p), 0, 0) }},
		{"as the epoch to come", func(k *cache.Cache, p *lateKeys) {
			before := &beforeLate{testSeries{id: 2, steps: 4, size: 4096}, p}
			for step := range before.steps - 1 {
				if s, err := k.Open(context.Background(), nil, as(before), 0, step, before.Key(0, step)); err == nil {
					s.Release()
				}
			}
			<-p.answer
		}},
		{"for what a reader comes to", func(k *cache.Cache, p *lateKeys) {
			for step := range p.from {
				if s, err := k.Open(context.Background(), nil, as(p), 0, step, p.Key(0, step)); err == nil {
					s.Release()
				}
			}
			<-p.answer
			for ready := false; !ready; time.Sleep(time.Millisecond) {
				_, ready = k.Contains(p.Key(0, p.from))
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newCache(t, cache.Config{})
			other := &testSeries{id: 1, steps: 1, size: 4096}
			open(t, k, other, 0, 0).Release()
			late := newLateKeys(3)
			if tt.name == "for what a reader comes to" {
				late.from = 2
			}
			var asks sync.WaitGroup
			asks.Go(func() { tt.ask(k, late) })
			<-late.asked
			opened := make(chan error, 1)
			go func() {
				s, err := k.Open(context.Background(), nil, as(other), 0, 0, other.Key(0, 0))
				if err == nil {
					s.Release()
				}
				opened <- err
			}()
			select {
			case err := <-opened:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(2 * time.Minute):
				t.Error("it is waited for")
				go func() { <-opened }()
			}
			close(late.answer)
			asks.Wait()
			eventually.True(t, "all is released", func() bool { return k.Stats().Handles == 0 })
		})
	}
}

// Forgetful is a series that never knows a key when it is asked under the lock.
type forgetful struct {
	testSeries
	keys atomic.Int64
}

func (p *forgetful) Next() *cache.Series { return nil }

func (p *forgetful) Key(rank, step uint64) cache.Key {
	p.keys.Add(1)
	return p.testSeries.Key(rank, step)
}

func (p *forgetful) Known(uint64, uint64) (cache.Key, bool) { return cache.Key{}, false }

// A key that cannot be found is not looked for over and over, but when its reader moves.
func TestAKeyThatIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{})
		defer k.Close()
		p := &forgetful{testSeries: testSeries{id: 1, steps: 20, size: 4096}}
		for step := range p.steps {
			open(t, k, p, 0, step).Release()
			time.Sleep(time.Second)
		}
		// Choices of levels ask for those of all steps to come. An open brings its own.
		if n := p.keys.Load() - int64(p.steps); n < 1 || n > int64(p.steps*p.steps) {
			t.Errorf("%d keys were asked for in %d opens", n, p.steps)
		}
	})
}
