package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/stall"
)

// A slowPlan fills as sources do: it reads for two seconds and unpacks for one.
type slowPlan struct{ *testPlan }

func (p slowPlan) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	m := stall.Enter(ctx, stall.Source)
	time.Sleep(2 * time.Second)
	m.Leave(int64(len(dst)))
	defer stall.Enter(ctx, stall.Decode).Leave(0)
	time.Sleep(time.Second)
	return p.testPlan.Fill(ctx, rank, step, dst)
}

// openFor opens a batch for an account.
func openFor(t *testing.T, k *cache.Cache, a *stall.Table, p cache.Plan, rank, step uint64) *cache.Slab {
	t.Helper()
	o := a.Open("job", rank)
	s, err := k.Open(t.Context(), &o, p, rank, step)
	o.Done(0, err)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What opens wait for is told apart, for each the part within its own wait:
// the first one of a batch, one that comes in between, one that finds no worker
// free, and one that waits for nothing.
func TestWaitsByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stall.NewTable(time.Now)
		k := newCache(t, cache.Config{Stalls: a, Workers: 1})
		p := slowPlan{&testPlan{steps: 1, size: 100}}
		var opens sync.WaitGroup
		open := func(rank uint64) { openFor(t, k, a, p, rank, 0).Release() }
		opens.Go(func() { open(0) })
		time.Sleep(time.Second / 2)
		opens.Go(func() { open(0) }) // 1.5 and 1 s are left of its fill
		opens.Go(func() { open(1) }) // 2.5 s until the worker is free
		opens.Wait()
		open(0)
		want := stall.Split{stall.Source: 5.5e9, stall.Decode: 3e9, stall.Admission: 2.5e9}
		s := k.Stats()
		if s.Waits != want || s.WaitTime != want.Sum() || s.OpensWaited != 3 || s.OpensReady != 1 {
			t.Errorf("waited %v in %d opens, %d ready; want %v in 3", s.Waits, s.OpensWaited, s.OpensReady, want)
		}
		got := a.Report().Jobs[0].Totals
		if got.Wait != want || got.Opens != 4 || got.Waited != 3 || got.Ready != 1 {
			t.Errorf("the account has %+v, want waits of %v", got, want)
		}
	})
}

// Who waits for memory waits for admission, and so does who gives up.
func TestWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stall.NewTable(time.Now)
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Stalls: a})
		p := &testPlan{steps: 2, size: 16 << 20}
		s := openFor(t, k, a, p, 0, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		o := a.Open("job", 1)
		_, err := k.Open(ctx, &o, p, 1, 1)
		o.Done(0, err)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("open with all held: %v", err)
		}
		s.Release()
		if w := k.Stats().Waits; w[stall.Admission] < 4999*time.Millisecond || w.Sum()-w[stall.Admission] > time.Millisecond {
			t.Errorf("waited %v, want 5 s of admission", w)
		}
		if got := a.Report().Jobs[0].Totals; got.Errors != 1 || got.Wait.Sum() < 5*time.Second {
			t.Errorf("the account has %+v", got)
		}
	})
}

// A batch that is made of parts waits for what its part waits for, also when
// another batch's fill is making that part.
func TestWaitsForParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stall.NewTable(time.Now)
		k := newCache(t, cache.Config{Stalls: a, Workers: 2})
		parts := slowPlan{&testPlan{id: 1, steps: 1, size: 100, share: true}}
		p := &partPlan{testPlan: &testPlan{id: 2, steps: 1, size: 100}, cache: k, parts: parts}
		var opens sync.WaitGroup
		for rank := range uint64(2) {
			opens.Go(func() { openFor(t, k, a, p, rank, 0).Release() })
			synctest.Wait()
			time.Sleep(time.Second)
		}
		opens.Wait()
		want := stall.Split{stall.Source: 3e9, stall.Decode: 2e9}
		if got := k.Stats().Waits; got != want {
			t.Errorf("waited %v, want %v", got, want)
		}
	})
}

// A partPlan copies from the one part there is.
type partPlan struct {
	*testPlan
	cache *cache.Cache
	parts cache.Plan
}

func (p *partPlan) Fill(ctx context.Context, rank, step uint64, dst []byte) error {
	s, err := p.cache.Part(ctx, p.parts, 0, 0, true)
	if err != nil {
		return err
	}
	defer s.Release()
	_, err = s.ReadAt(dst, 0)
	return err
}

// What is ready costs no allocation more than without an account.
func TestReadyOpenAllocatesNoMore(t *testing.T) {
	a := stall.NewTable(time.Now)
	k := newCache(t, cache.Config{Stalls: a})
	p := &testPlan{steps: 2, size: 100}
	openFor(t, k, a, p, 0, 0).Release()
	plain := testing.AllocsPerRun(1000, func() { open(t, k, p, 0, 0).Release() })
	accounted := testing.AllocsPerRun(1000, func() { openFor(t, k, a, p, 0, 0).Release() })
	if accounted > plain {
		t.Errorf("%v allocations with an account, %v without", accounted, plain)
	}
}

// What the account of an open costs, of a batch that is ready and of one that is
// waited for.
func BenchmarkAccount(b *testing.B) {
	p := &testPlan{steps: 1 << 40, size: 100}
	for name, accounted := range map[string]bool{"plain": false, "accounted": true} {
		a := stall.NewTable(time.Now)
		k := newCache(b, cache.Config{Stalls: a})
		one := func(step uint64) {
			var o *stall.Open
			if accounted {
				open := a.Open("job", 0)
				o = &open
			}
			s, err := k.Open(b.Context(), o, p, 0, step)
			if err != nil {
				b.Fatal(err)
			}
			if accounted {
				o.Done(100, nil)
			}
			s.Release()
		}
		b.Run("ready/"+name, func(b *testing.B) {
			for b.Loop() {
				one(0)
			}
		})
		b.Run("waited/"+name, func(b *testing.B) {
			step := uint64(1 << 30)
			for b.Loop() {
				one(step)
				step += 1 << 20 // far from the one before, so that nobody expects it
			}
		})
	}
}
