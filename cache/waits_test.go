package cache_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/meta/stall"
)

// A slowSeries fills as sources do: it reads for two seconds and unpacks for one.
type slowSeries struct{ *testSeries }

func (p slowSeries) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	m := stall.Enter(ctx, stall.Source)
	time.Sleep(2 * time.Second)
	m.Leave(int64(len(dst)))
	defer stall.Enter(ctx, stall.Decode).Leave(0)
	time.Sleep(time.Second)
	return p.testSeries.Fill(ctx, rank, step, dst)
}

// openFor opens a batch for an account.
func openFor(t *testing.T, k *cache.Cache, a *stall.Table, p series, rank, step uint64) *cache.Slab {
	t.Helper()
	o := a.Open("job", rank)
	s, err := k.Open(t.Context(), &o, as(p), rank, step, p.Key(rank, step))
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
		p := slowSeries{&testSeries{steps: 1, size: 100}}
		var opens sync.WaitGroup
		open := func(rank uint64) { openFor(t, k, a, p, rank, 0).Release() }
		opens.Go(func() { open(0) })
		time.Sleep(time.Second / 2)
		opens.Go(func() { open(0) }) // 1.5 and 1 s are left of its fill
		opens.Go(func() { open(1) }) // 2.5 s until the worker is free
		opens.Wait()
		open(0)
		want := stall.ByCause{stall.Source: 5.5e9, stall.Decode: 3e9, stall.Admission: 2.5e9}
		if s := k.Stats(); s.OpensWaited != 3 || s.OpensReady != 1 {
			t.Errorf("%d opens waited, %d were ready", s.OpensWaited, s.OpensReady)
		}
		got := a.Report().Jobs[0].Totals
		if got.Wait != want || got.Opens != 4 || got.Waited != 3 || got.Ready != 1 {
			t.Errorf("the account has %+v, want waits of %v", got, want)
		}
	})
}

// An open that waits for memory is seen while it waits and after it gave up, with the memory that
// would have been enough.
func TestWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stall.NewTable(time.Now)
		k := newCache(t, cache.Config{RAMBytes: 16 << 20, Stalls: a})
		p := &testSeries{steps: 2, size: 16 << 20}
		s := openFor(t, k, a, p, 0, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		o := a.Open("job", 1)
		_, err := k.Open(ctx, &o, as(p), 1, 1, p.Key(1, 1))
		o.Done(0, err)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("open with all held: %v", err)
		}
		s.Release()
		got := a.Report().Jobs[0].Totals
		if w := got.Wait; got.Errors != 1 || w[stall.Memory] < 4999*time.Millisecond || w.Sum()-w[stall.Memory] > time.Millisecond {
			t.Errorf("the account has %+v, want 5 s of memory", got)
		}
		if l := k.Lacked(); l == nil || l.Batches != 1 || l.Held != 16<<20 || l.Asked != 16<<20 {
			t.Errorf("what was lacking is %+v, want one batch of 16 MiB beside another", l)
		}
	})
}

// A batch that is made of inputs waits for what its input waits for, also when
// another batch's fill is making that input.
func TestWaitsForInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := stall.NewTable(time.Now)
		k := newCache(t, cache.Config{Stalls: a, Workers: 2})
		inputs := slowSeries{&testSeries{id: 1, steps: 1, size: 100, share: true}}
		p := &inputSeries{testSeries: &testSeries{id: 2, steps: 1, size: 100}, inputs: inputs}
		var opens sync.WaitGroup
		for rank := range uint64(2) {
			opens.Go(func() { openFor(t, k, a, p, rank, 0).Release() })
			synctest.Wait()
			time.Sleep(time.Second)
		}
		opens.Wait()
		want := stall.ByCause{stall.Source: 3e9, stall.Decode: 2e9}
		if got := a.Report().Jobs[0].Totals.Wait; got != want {
			t.Errorf("waited %v, want %v", got, want)
		}
	})
}

// An inputSeries copies from the one input there is.
type inputSeries struct {
	*testSeries
	inputs series
}

func (p *inputSeries) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	return copies(ctx, p.inputs, true, []uint64{0}, func(_ uint64, input io.ReaderAt) error {
		_, err := input.ReadAt(dst, 0)
		return err
	})
}

// What is ready costs no allocation more than without an account.
func TestReadyOpenAllocatesNoMore(t *testing.T) {
	a := stall.NewTable(time.Now)
	k := newCache(t, cache.Config{Stalls: a})
	p := &testSeries{steps: 2, size: 100}
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
	p := &testSeries{steps: 1 << 40, size: 100}
	series := as(p)
	for name, accounted := range map[string]bool{"plain": false, "accounted": true} {
		a := stall.NewTable(time.Now)
		k := newCache(b, cache.Config{Stalls: a})
		one := func(step uint64) {
			var o *stall.Open
			if accounted {
				open := a.Open("job", 0)
				o = &open
			}
			s, err := k.Open(b.Context(), o, series, 0, step, p.Key(0, step))
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
				step += 1 << 20 // far from the one before, so that the cache does not expect it
			}
		})
	}
}
