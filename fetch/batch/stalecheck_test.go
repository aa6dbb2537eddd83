package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/shuffle/plan"
)

var (
	errChanged = fmt.Errorf("%w: it is longer", meta.ErrStale)
	errGone    = fmt.Errorf("node b %w", meta.ErrUnavailable)
	errNoCall  = &meta.Told{Kind: "not_exist", Message: "no such call"}
	errMany    = &meta.Told{Kind: "busy", Message: "256 calls are under way"}
)

// An answer of the node that has the source holds for answerAge, and opens that come together have
// it asked once. What it said last counts also while it is silent or gone, and then no open asks it
// again for checkRest.
func TestWhatTheOwnerSays(t *testing.T) {
	const silent = time.Hour // before it answers
	type asked struct {
		after  time.Duration // the one before
		takes  time.Duration
		answer error
		want   error
		asks   bool
		waits  time.Duration
	}
	for name, steps := range map[string][]asked{
		"it has not changed": {{asks: true}, {after: answerAge - 1}, {after: 1, asks: true}},
		"it changes": {
			{asks: true}, {after: answerAge - 1, answer: errChanged},
			{after: 1, answer: errChanged, want: errChanged, asks: true}, {after: answerAge - 1, want: errChanged}, {after: 1, asks: true},
		},
		"the node is slow":     {{takes: checkTime - 1, answer: errChanged, want: errChanged, asks: true, waits: checkTime - 1}},
		"the node hangs":       {{takes: silent, asks: true, waits: checkTime}, {after: checkRest - 1, answer: errChanged}, {after: 1, answer: errChanged, want: errChanged, asks: true}},
		"the node goes":        {{answer: errChanged, want: errChanged, asks: true}, {after: answerAge, answer: errGone, want: errChanged, asks: true}, {after: checkRest - 1, want: errChanged}, {after: 1, asks: true}},
		"the node is busy":     {{answer: errMany, asks: true}, {after: checkRest, asks: true}},
		"the release before":   {{answer: errNoCall, asks: true}, {after: checkRest - 1}, {after: 1, answer: errNoCall, asks: true}},
		"it hangs, changed":    {{answer: errChanged, want: errChanged, asks: true}, {after: answerAge, takes: silent, want: errChanged, asks: true, waits: checkTime}},
		"it answers with more": {{answer: errors.Join(errGone, errChanged), want: errChanged, asks: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now asked
				var asks atomic.Int32
				q := newStaleCheck(func(ctx context.Context, node string) error {
					asks.Add(1)
					if node != "b" {
						t.Errorf("%q is asked", node)
					}
					select {
					case <-time.After(now.takes):
						return now.answer
					case <-ctx.Done():
						return errGone
					}
				})
				for i, step := range steps {
					time.Sleep(step.after)
					now = step
					asks.Store(0)
					begin := time.Now()
					var openers sync.WaitGroup
					for range 20 {
						openers.Go(func() {
							if err := q.stale(t.Context(), "b", nil); !errors.Is(err, step.want) || step.want == nil && err != nil {
								t.Errorf("%d: %v, want %v", i, err, step.want)
							}
						})
					}
					openers.Wait()
					if n := asks.Load(); n > 1 || (n == 1) != step.asks {
						t.Errorf("%d: it is asked %d times", i, n)
					}
					if took := time.Since(begin); took != step.waits {
						t.Errorf("%d: they wait for %v, want %v", i, took, step.waits)
					}
				}
			})
		})
	}
}

// One that leaves ends its check, and another one that waits asks.
func TestACallerThatAsksLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := 0
		q := newStaleCheck(func(ctx context.Context, _ string) error {
			asks++
			select {
			case <-time.After(time.Second):
				return errChanged
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, leave := context.WithCancel(t.Context())
		var openers sync.WaitGroup
		openers.Go(func() {
			if err := q.stale(ctx, "b", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that leaves: %v", err)
			}
		})
		synctest.Wait()
		openers.Go(func() {
			if err := q.stale(t.Context(), "b", nil); !errors.Is(err, errChanged) {
				t.Errorf("the one that stays: %v", err)
			}
		})
		openers.Go(func() {
			if err := q.stale(ctx, "b", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("one that leaves before its turn: %v", err)
			}
		})
		synctest.Wait()
		leave()
		openers.Wait()
		if asks != 2 {
			t.Errorf("asked %d times, want 2", asks)
		}
	})
}

// What one node has said is not what another one says that has the source now, and counts
// no more once this node sees for itself.
func TestAnotherNodeHasTheSource(t *testing.T) {
	q := newStaleCheck(func(_ context.Context, node string) error {
		if node == "b" {
			return errChanged
		}
		return nil
	})
	if q.stale(t.Context(), "b", nil); q.said("b") == nil || q.said("c") != nil {
		t.Errorf("b said %v, c %v", q.said("b"), q.said("c"))
	}
	if err := q.stale(t.Context(), "c", nil); err != nil || q.said("b") != nil {
		t.Errorf("c says %v", err)
	}
	q.stale(t.Context(), "b", nil)
	if q.forget(); q.said("b") != nil {
		t.Errorf("b said %v", q.said("b"))
	}
}

// An open makes no garbage while an answer holds.
func TestAnswersCostNothing(t *testing.T) {
	q := newStaleCheck(func(context.Context, string) error { return nil })
	q.last.Store(&reply{node: "b", until: time.Now().Add(time.Hour)})
	if n := testing.AllocsPerRun(100, func() { q.stale(t.Context(), "b", nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// elsewhere is a version of a source that node a has, as node b knows it.
func elsewhere(t *testing.T, source string, ask Ask) (v *Version, o *plan.Owners) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index")
	b, err := index.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b.BeginChunk()
	b.AddStride(b.AddFile(index.File{Path: "f", Size: 60}), 0, 10, 6)
	if err := b.Commit("v1"); err != nil {
		t.Fatal(err)
	}
	o = &plan.Owners{Self: "node-b"}
	o.Follow(nodesOn("a", "b"))
	v, err = Open(path, Config{Source: source, Origin: "node-a", Hash: strings.Repeat("5", 64), Owners: o, Ask: ask})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Opened().Close() })
	return v, o
}

// open is an open of a batch that is in the cache.
func open(t *testing.T, v *Version) (err error) {
	for begun, again := time.Now(), true; again; again = v.Source.Again(t.Context(), nil, begun, &err) {
		err = v.Source.Reach(t.Context(), nil)
	}
	return err
}

// A source that only another node has is what that node says, whatever is at its path
// here. While that node is down what is ready is opened, unless the last that it said was
// that the source had changed; when it is gone from the cluster there is none.
func TestASourceThatIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer error
		v, o := elsewhere(t, "file:"+t.TempDir()+"/f", func(_ context.Context, node string, id peers.ID) error {
			if node != "node-a" || id != [32]byte(bytes.Repeat([]byte{0x55}, 32)) {
				t.Errorf("node %s is asked for %x", node, id)
			}
			return answer
		})
		if err := open(t, v); err != nil || v.Source.Stale() != nil {
			t.Errorf("as it was: %v, %v", err, v.Source.Stale())
		}
		time.Sleep(answerAge)
		answer = errChanged
		if err := open(t, v); !errors.Is(err, meta.ErrStale) || !strings.Contains(err.Error(), "on host a: ") || v.Source.Stale() != err {
			t.Errorf("changed: %v, %v", err, v.Source.Stale())
		}
		time.Sleep(answerAge)
		answer = nil
		if err := open(t, v); err != nil || v.Source.Stale() != nil {
			t.Errorf("as it was again: %v, %v", err, v.Source.Stale())
		}
		nodes := nodesOn("a", "b")
		nodes[0].Up = false
		o.Follow(nodes)
		if err := open(t, v); err != nil || v.Source.Stale() != nil {
			t.Errorf("without the node that has it: %v, %v", err, v.Source.Stale())
		}
		if _, err := v.Source.Data(t.Context()); !errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "node-a") {
			t.Errorf("its bytes, without the node that has it: %v", err)
		}
		o.Follow(nodesOn("a", "b"))
		time.Sleep(answerAge)
		answer = errChanged
		open(t, v)
		o.Follow(nodes)
		if err := open(t, v); !errors.Is(err, meta.ErrStale) || v.Source.Stale() == nil {
			t.Errorf("changed before the node went: %v, %v", err, v.Source.Stale())
		}
		o.Follow(nodesOn("b"))
		if err := open(t, v); !errors.Is(err, meta.ErrStale) || v.Source.Stale() == nil {
			t.Errorf("when the node is no longer one of the cluster: %v, %v", err, v.Source.Stale())
		}
	})
}

// A source that another node has is looked for here once a second, however often what is in
// memory is opened, also while that node is down.
func TestASourceThatIsElsewhereIsLookedForNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, o := elsewhere(t, "dataset:base", func(context.Context, string, peers.ID) error { return nil })
		looks := 0
		v.Source.env = &fetch.Env{Base: func(string) (fetch.Base, error) {
			looks++
			return fetch.Base{}, meta.ErrStale
		}}
		down := nodesOn("a", "b")
		down[0].Up = false
		for _, nodes := range [][]plan.Node{nodesOn("a", "b"), down} {
			o.Follow(nodes)
			looks = 0
			for range 3 {
				for range 100 {
					if err := open(t, v); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(answerAge)
			}
			if looks != 3 {
				t.Errorf("%d looks in 3 seconds, for 300 opens", looks)
			}
		}
	})
}

// A version that was taken out of the catalog is read no more where its source is not
// either, though the other node may still say that it is as it was.
func TestRemovedWhereTheSourceIsNot(t *testing.T) {
	for _, source := range []string{"file:/nowhere/f", "hdfs:///f?as=lmdb"} {
		v, _ := elsewhere(t, source, func(context.Context, string, peers.ID) error { return nil })
		if err := open(t, v); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		v.Opened().Remove()
		if err := open(t, v); !errors.Is(err, ErrRemoved) {
			t.Errorf("%s, removed: %v", source, err)
		}
	}
}
