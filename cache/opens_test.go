package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
)

func TestSizes(t *testing.T) {
	k := newCache(t, cache.Config{})
	for i, size := range []int64{0, 1, 4095, 4096, 4097, 1<<20 - 1, 1 << 20, 3<<20 + 5} {
		p := &testSeries{id: byte(i), steps: 3, size: size}
		for step := range p.steps {
			s := open(t, k, p, 0, step)
			check(t, s, p, 0, step)
			s.Release()
		}
	}
}

// An interrupted open leaves; the fill goes on for the others.
func TestInterrupted(t *testing.T) {
	k := newCache(t, cache.Config{})
	p := &testSeries{steps: 1, size: 100, gate: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { _, err := k.Open(ctx, nil, as(p), 0, 0, p.Key(0, 0)); gone <- err }()
	stays := make(chan *cache.Slab)
	go func() { s, _ := k.Open(t.Context(), nil, as(p), 0, 0, p.Key(0, 0)); stays <- s }()
	for k.Stats().OpensWaited < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted open: %v", err)
	}
	close(p.gate)
	s := <-stays
	check(t, s, p, 0, 0)
	s.Release()
	if n := p.filled(0, 0); n != 1 {
		t.Errorf("filled %d times", n)
	}
}

// A failed fill is told to all opens that wait, and tried again by the next open.
func TestFailure(t *testing.T) {
	k := newCache(t, cache.Config{})
	broken := fmt.Errorf("disk on fire")
	p := &testSeries{steps: 10, size: 100, fail: func(_, step uint64) error { return broken }}
	for range 3 {
		if _, err := k.Open(t.Context(), nil, as(p), 0, 0, p.Key(0, 0)); !errors.Is(err, broken) {
			t.Fatalf("open: %v", err)
		}
	}
	if n := k.Stats().FillErrors; n < 3 {
		t.Errorf("%d fill errors counted", n)
	}
}

// What a rank will ask for is there before it asks, and no more than that.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{MaxAhead: 4})
		p := &testSeries{steps: 100, size: 1 << 10}
		for step := range uint64(20) {
			s := open(t, k, p, 7, step)
			s.Release()
		}
		awaitQuiet(k)
		if n := p.filled(7, 20); n != 1 {
			t.Errorf("the next step was filled %d times, want 1", n)
		}
		if n := p.filled(7, 40); n != 0 {
			t.Errorf("a step beyond the window was filled")
		}
		// Another process opens a batch of the rank: what is expected of the rank stays what it was.
		open(t, k, p, 7, 90).Release()
		awaitQuiet(k)
		open(t, k, p, 7, 20).Release()
		awaitQuiet(k)
		if p.filled(7, 91) != 0 || p.filled(7, 21) != 1 {
			t.Errorf("after a look at 90: 91 filled %d times, 21 %d times", p.filled(7, 91), p.filled(7, 21))
		}
		// A resume: the window goes along.
		open(t, k, p, 7, 60).Release()
		open(t, k, p, 7, 61).Release()
		awaitQuiet(k)
		if p.filled(7, 62) != 1 || p.filled(7, 59) != 0 {
			t.Errorf("after a jump to 60: 62 filled %d times, 59 %d times", p.filled(7, 62), p.filled(7, 59))
		}
		if n := p.filled(0, 0); n != 0 {
			t.Error("a rank that no reader has opened was filled")
		}
	})
}

// The first steps of the next epoch are there before this one ends.
func TestAheadOfTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCache(t, cache.Config{MaxAhead: 4})
		next := &testSeries{id: 2, steps: 20, size: 1 << 10, last: true}
		p := &testSeries{id: 1, steps: 20, size: 1 << 10, next: next}
		for step := range p.steps - 1 {
			open(t, k, p, 7, step).Release()
			awaitQuiet(k)
		}
		if next.filled(7, 0) != 1 || next.filled(7, 10) != 0 {
			t.Errorf("before the last step: the next epoch's step 0 was filled %d times, 10 %d times", next.filled(7, 0), next.filled(7, 10))
		}
		open(t, k, p, 7, p.steps-1).Release()
		for step := range next.steps {
			awaitQuiet(k)
			if next.filled(7, step) != 1 {
				t.Fatalf("step %d of the next epoch was filled %d times before it was opened", step, next.filled(7, step))
			}
			open(t, k, next, 7, step).Release()
		}
	})
}

// Many ranks, tiny memory, everything at once: right bytes, and the budget holds.
func TestStress(t *testing.T) {
	k := newCache(t, cache.Config{RAMBytes: 16 << 20})
	p := &testSeries{steps: 40, size: 300_000}
	var ranks sync.WaitGroup
	for rank := range uint64(8) {
		ranks.Go(func() {
			for step := range p.steps {
				s, err := k.Open(t.Context(), nil, as(p), rank, step, p.Key(rank, step))
				if err != nil {
					t.Error(err)
					return
				}
				check(t, s, p, rank, step)
				s.Release()
			}
		})
	}
	ranks.Wait()
	if u := k.Stats().RAM.Used; u > 16<<20 {
		t.Errorf("%d bytes used", u)
	}
}
