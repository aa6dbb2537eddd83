package cache_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/meta/stall"
)

// A ratedSeries fills from a source that does one thing after the other.
type ratedSeries struct {
	*testSeries
	after *ratedSeries // the next epoch; nil: none
	disk  chan struct{}
	takes time.Duration // a batch
}

func (p *ratedSeries) Next() *cache.Series {
	if p.after == nil {
		return nil
	}
	return as(p.after)
}

func (p *ratedSeries) Fill(ctx context.Context, rank, step uint64, dst []byte) iter.Seq2[cache.Input, error] {
	defer stall.Enter(ctx, stall.Source).Leave(int64(len(dst)))
	p.disk <- struct{}{}
	defer func() { <-p.disk }()
	time.Sleep(p.takes)
	return p.testSeries.Fill(ctx, rank, step, dst)
}

// steady has ranks use four fifths of what a source gives, for three epochs that
// have batches of their own, and returns the account as of when all had done two
// steps, and at the end.
func steady(t *testing.T) (begun, ended stall.Totals) {
	const ranks, steps, epochs, takes = 4, 64, 3, 10 * time.Millisecond
	a := stall.NewTable(time.Now)
	k := newCache(t, cache.Config{RAMBytes: 32 << 20, Stalls: a, Workers: 2})
	disk := make(chan struct{}, 1)
	var all [epochs]*ratedSeries
	for e := epochs - 1; e >= 0; e-- {
		p := &testSeries{id: byte(e), steps: steps, size: 1 << 20, once: true}
		all[e] = &ratedSeries{p, all[min(e+1, epochs-1)], disk, takes}
	}
	var first, jobs sync.WaitGroup
	first.Add(ranks)
	for rank := range uint64(ranks) {
		jobs.Go(func() {
			for i := range uint64(epochs * steps) {
				s := openFor(t, k, a, all[i/steps], rank, i%steps)
				time.Sleep(ranks * takes * 5 / 4)
				s.Release()
				if i == 1 {
					first.Done()
				}
			}
		})
	}
	first.Wait()
	begun = a.Report().Jobs[0].Totals
	jobs.Wait()
	ended = a.Report().Jobs[0].Totals
	if begun.Waited < ranks || ended.Opens != ranks*steps*epochs || ended.Ready+ended.Waited != ended.Opens {
		t.Errorf("after two steps %+v, at the end %+v", begun, ended)
	}
	return begun, ended
}

// Ranks that use four fifths of what the source gives wait for their first
// steps, and then never again, over epochs' ends too, where each epoch has
// batches of its own.
func TestSteadyRanksDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, ended := steady(t)
		if n := ended.Waited - begun.Waited; n != 0 {
			t.Errorf("%d opens waited after the first steps, for %v", n, ended.Wait.Sub(begun.Wait))
		}
	})
}
