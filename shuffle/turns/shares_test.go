package turns

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta"
)

func (c *request) isGranted() bool {
	select {
	case <-c.granted:
		return true
	default:
		return false
	}
}

// Jobs that always want more get of it by their weights, in whatever pieces they want it.
func TestSharesByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const all = 4
		s := New(all)
		weights := rapid.SliceOfN(rapid.Uint64Range(1, meta.MaxWeight), 2, 5).Draw(t, "weights")
		most := rapid.SliceOfN(rapid.Int64Range(1, 1000), len(weights), len(weights)).Draw(t, "most")
		random := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		got, wait := make([]float64, len(weights)), make([][]*request, len(weights))
		var held []*request
		ask := func(i int) {
			c := &request{1 + random.Int64N(all), 1 + random.Int64N(most[i]), weights[i], make(chan struct{})}
			wait[i] = append(wait[i], c)
			s.ask(uint64(i), c)
		}
		s.mu.used = all // until all have come
		for i := range weights {
			for range all + 1 { // one is left to wait, whatever is given back at once
				ask(i)
			}
		}
		s.give(all)
		for range 500 {
			used := int64(0)
			for i := range weights {
				for wait[i][0].isGranted() {
					got[i] += float64(wait[i][0].cost) / float64(weights[i])
					held, wait[i] = append(held, wait[i][0]), wait[i][1:]
					ask(i)
				}
			}
			for _, c := range held {
				used += c.n
			}
			if used > all {
				t.Fatalf("%d of %d are given", used, all)
			}
			for i, a := range got {
				for j, b := range got[:i] {
					if least := float64(most[i])/float64(weights[i]) + float64(most[j])/float64(weights[j]); max(a-b, b-a) > least+1e-6 {
						t.Fatalf("by their weights jobs have got %.0f and %.0f, which differ by more than what they wanted last, %.0f", a, b, least)
					}
				}
			}
			k := random.IntN(len(held))
			s.give(held[k].n)
			held = slices.Delete(held, k, k+1)
		}
	})
}

// A job that comes late has no right to what the others had before, nor does it wait for what they
// had alone.
func TestSharesOfAJobThatComesLate(t *testing.T) {
	s := New(1)
	wait := make(map[uint64][]*request)
	ask := func(job uint64, n int) {
		for range n {
			c := &request{1, 10, meta.MaxWeight, make(chan struct{})}
			wait[job] = append(wait[job], c)
			s.ask(job, c)
		}
	}
	turns := func(n int) (of map[uint64]int) {
		of = make(map[uint64]int)
		for range n {
			for job, all := range wait {
				if all[0].isGranted() {
					of[job]++
					wait[job] = all[1:]
				}
			}
			s.give(1)
		}
		return of
	}
	ask(1, 100)
	turns(50)
	ask(2, 20)
	if of := turns(21); of[2] < 10 || of[1] < 10 {
		t.Errorf("of 21 turns the jobs had %d", of)
	}
}

// A request that leaves has had nothing, those behind it come, and nothing is left in the end.
func TestSharesAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, random := New(3), rand.New(rand.NewPCG(7, 7))
		var work sync.WaitGroup
		for i := range 400 {
			n, cost, wait, hold := 1+random.Int64N(5), random.Int64N(100), time.Duration(random.IntN(200))*time.Millisecond, time.Duration(random.IntN(9))*time.Millisecond
			work.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				give, err := s.Take(ctx, Party{uint64(i % 7), 1 + uint64(i%meta.MaxWeight)}, n, cost)
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					return
				}
				time.Sleep(hold)
				give()
				give() // which is no more
			})
		}
		work.Wait()
		s.grant()
		if s.mu.used != 0 || len(s.mu.by) != 0 {
			t.Errorf("%d are in use, %d jobs are known", s.mu.used, len(s.mu.by))
		}
	})
}

// A request that waits for a node with which nothing goes on leaves, and one that sees others come
// and go waits for as long as it takes.
func TestSharesThatAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func(s *Shares, job uint64) (after time.Duration, err error) {
			ticks, begun := time.NewTicker(stuckTime), time.Now()
			defer ticks.Stop()
			give, err := s.takeSoon(t.Context(), Party{job, 1}, 1, 1, ticks.C)
			if err == nil {
				give()
			}
			return time.Since(begun), err
		}
		stuck := New(1)
		give, err := stuck.Take(t.Context(), Party{1, 1}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if after, err := one(stuck, 2); !errors.Is(err, meta.ErrBusy) || after != stuckTime {
			t.Errorf("after %v: %v", after, err)
		}
		give()
		if after, err := one(stuck, 2); err != nil || after != 0 {
			t.Errorf("after %v: %v", after, err)
		}
		moving := New(1)
		for range 20 { // of a weight that lets all of them go first
			go func() {
				give, err := moving.Take(t.Context(), Party{1, meta.MaxWeight}, 1, 1)
				if err != nil {
					t.Error(err)
				}
				time.Sleep(stuckTime - time.Second)
				give()
			}()
		}
		synctest.Wait()
		if after, err := one(moving, 1); err != nil || after != 20*(stuckTime-time.Second) {
			t.Errorf("behind others, after %v: %v", after, err)
		}
	})
}
