package cache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/test/eventually"
)

// Late keys are those of a series that knows the first only when it is told, as one whose
// epoch has to be divided for it.
type lateKeys struct {
	testSeries
	first  sync.Once
	asked  chan struct{}
	answer chan struct{}
}

func newLateKeys(id byte) *lateKeys {
	return &lateKeys{testSeries: testSeries{id: id, steps: 4, size: 4096}, asked: make(chan struct{}), answer: make(chan struct{})}
}

func (p *lateKeys) Next() cache.Series { return nil }

func (p *lateKeys) Key(rank, step uint64) cache.Key {
	p.first.Do(func() {
		close(p.asked)
		<-p.answer
	})
	return p.testSeries.Key(rank, step)
}

// A series that such a one follows.
type beforeLate struct {
	testSeries
	next *lateKeys
}

func (p *beforeLate) Next() cache.Series { return p.next }

// While a series finds its first key, batches of others are opened.
func TestOthersAreOpenedWhileASeriesFindsItsFirstKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(k *cache.Cache, p *lateKeys) // has the key of a series asked for, and returns when it is known
	}{
		{"for an open", func(k *cache.Cache, p *lateKeys) {
			if s, err := k.Open(context.Background(), nil, p, 0, 0); err == nil {
				s.Release()
			}
		}},
		{"for an input", func(k *cache.Cache, p *lateKeys) {
			if s, err := k.Input(context.Background(), p, 0, 0, true); err == nil {
				s.Release()
			}
		}},
		{"by hand", func(k *cache.Cache, p *lateKeys) { k.Prepare(context.Background(), p, 0, 0) }},
		{"as the epoch to come", func(k *cache.Cache, p *lateKeys) {
			before := &beforeLate{testSeries{id: 2, steps: 4, size: 4096}, p}
			for step := range before.steps - 1 {
				if s, err := k.Open(context.Background(), nil, before, 0, step); err == nil {
					s.Release()
				}
			}
			<-p.answer
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newCache(t, cache.Config{})
			other := &testSeries{id: 1, steps: 1, size: 4096}
			open(t, k, other, 0, 0).Release()
			late := newLateKeys(3)
			var asks sync.WaitGroup
			asks.Go(func() { tt.ask(k, late) })
			<-late.asked
			opened := make(chan error, 1)
			go func() {
				s, err := k.Open(context.Background(), nil, other, 0, 0)
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
			case <-time.After(10 * time.Second):
				t.Error("it is waited for")
				go func() { <-opened }()
			}
			close(late.answer)
			asks.Wait()
			eventually.True(t, "all is released", func() bool { return k.Stats().Handles == 0 })
		})
	}
}
