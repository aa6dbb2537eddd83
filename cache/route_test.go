package cache_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cache"
	"rankfs/cache/trace"
	"rankfs/cache/trace/tracetest"
)

// learnt is what a program's trace of few steps says.
func learnt(t *testing.T, opened []uint64, steps uint64) map[string]*trace.Graph {
	tr := trace.Trace{Steps: steps}
	for _, s := range opened {
		tr.Add(s)
	}
	g := tr.Graph()
	if g == nil {
		t.Fatal("nothing was learnt")
	}
	return map[string]*trace.Graph{"test": g}
}

// fillsOf is how many fills it takes to open steps in an order, where memory has
// room for half.
func fillsOf(t *testing.T, opened []uint64, policy string, of map[string]*trace.Graph) (fills int) {
	synctest.Test(t, func(t *testing.T) {
		p := &testSeries{id: 1, steps: routed, size: 32 << 10, noise: true, fail: slow(2 * time.Millisecond)}
		k := newCache(t, cache.Config{RAMBytes: routed / 2 * p.size, Workers: 1, Policy: policy})
		k.Learn(of)
		for _, step := range opened {
			time.Sleep(10 * time.Millisecond)
			open(t, k, p, 0, step).Release()
		}
		fills = int(k.Stats().Fills)
	})
	return fills
}

const routed = 1024 // steps

// What was learnt on 64 steps brings a reader of 1024, of which memory has room for
// half, nearly the hits of the best of all policies.
func TestHitsOnALearntRoute(t *testing.T) {
	for name, test := range map[string]struct{ least, without float64 }{
		"strided": {0.99, 0.01}, "there and back": {0.99, 1}, "scattered": {0.99, 0.01},
		"all once, then a quarter": {0.95, 0.9}, "three quarters once, then the rest": {0.95, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			opened := tracetest.Ways[name](routed, 3)
			var all []opening
			for _, s := range opened {
				all = append(all, opening{key: (&testSeries{id: 1}).Key(0, s)})
			}
			best := float64(bestOf(all, routed/2))
			hits := len(opened) - fillsOf(t, opened, "", learnt(t, tracetest.Ways[name](64, 4), 64))
			without := len(opened) - fillsOf(t, opened, "", nil)
			t.Logf("%d opens: %d hits, without a trace %d, the best is %.0f: %.4f, %.4f", len(opened), hits, without, best, float64(hits)/best, float64(without)/best)
			if float64(hits) < test.least*best {
				t.Errorf("%d of %d opens found their batch in memory, the best of all policies %.0f", hits, len(opened), best)
			}
			if float64(without) > test.without*best {
				t.Errorf("without a trace %d of %d opens found their batch in memory: this tests nothing", without, len(opened))
			}
		})
	}
}

// A reader that goes elsewhere than what was learnt costs no more than one of which
// nothing is known, or as under lru; but for what it takes to notice.
func TestDepartsFromTheRoute(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(draw func() uint64) (opened []uint64) {
		for range 3 * routed {
			opened = append(opened, draw())
		}
		return opened
	}
	for name, test := range map[string]struct {
		learnt string
		opened []uint64
	}{
		"at random":        {"strided", random(func() uint64 { return r.Uint64N(routed) })},
		"mostly a tenth":   {"strided", random(func() uint64 { return r.Uint64N(routed) / (1 + 9*min(1, r.Uint64N(10))) })},
		"a quarter":        {"strided", slices.Repeat(tracetest.Strided(routed/4, 7), 12)},
		"in order":         {"there and back", tracetest.Ways["there and back"](routed, 1)},
		"back and forth":   {"strided", tracetest.Ways["there and back"](routed, 3)},
		"all, again":       {"all once, then a quarter", tracetest.Ways["strided"](routed, 3)},
		"other than first": {"there and back", append(tracetest.Ways["there and back"](routed, 2), slices.Repeat(tracetest.Strided(routed/3, 5), 6)...)},
	} {
		t.Run(name, func(t *testing.T) {
			with := fillsOf(t, test.opened, "", learnt(t, tracetest.Ways[test.learnt](64, 4), 64))
			without, lru := fillsOf(t, test.opened, "", nil), fillsOf(t, test.opened, "lru", nil)
			t.Logf("%d opens: %d fills, without a trace %d, lru %d", len(test.opened), with, without, lru)
			const notice = 8
			if with > max(without, lru)+notice {
				t.Errorf("%d fills, %d without a trace, %d under lru", with, without, lru)
			}
		})
	}
}
