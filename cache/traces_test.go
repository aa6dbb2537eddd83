package cache_test

import (
	"slices"
	"testing"

	"rankfs/cache"
)

// What readers opened is told, the latest reader first; those that were silent
// longest are forgotten.
func TestTraces(t *testing.T) {
	k := newCache(t, cache.Config{})
	p := &testSeries{id: 1, steps: 8, size: 4096}
	for _, step := range []uint64{5, 3, 1, 5, 3, 1} {
		open(t, k, p, 0, step).Release()
	}
	open(t, k, p, 1, 7).Release()
	all := k.Traces()
	if len(all) != 2 || all[0].Rank != 1 || all[1].Rank != 0 || all[1].Series != p.ID() || all[1].Steps != 8 {
		t.Fatalf("traces %+v", all)
	}
	if got, want := slices.Collect(all[1].All()), []uint64{5, 3, 1, 5, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("rank 0 opened %v, told is %v", want, got)
	}
	for rank := range uint64(200) {
		open(t, k, p, 100+rank, 0).Release()
	}
	if all = k.Traces(); len(all) != cache.MaxTraced || slices.ContainsFunc(all, func(t cache.Traced) bool { return t.Rank < 100 }) {
		t.Errorf("%d traces, the last of rank %d", len(all), all[len(all)-1].Rank)
	}
	shared := &testSeries{id: 2, steps: 8, size: 4096, share: true}
	s, err := k.Input(t.Context(), as(shared), 0, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	if all = k.Traces(); all[0].Series == shared.ID() {
		t.Errorf("an input of batches is in the trace of a reader: %+v", all[0])
	}
}
