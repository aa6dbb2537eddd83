package views

import (
	"slices"
	"testing"
	"time"

	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/meta/stall"
	"rankfs/shuffle/plan"
)

// Chunks are fetched ahead by their owner alone, and only if it is known for whom; as
// the cache knows them each is a step, wherever the ranks are.
func TestChunksAhead(t *testing.T) {
	k := catalogtest.New(t, 3)
	k.Up()
	n := viewsOf(t, k, "ranks=4,batch=2", 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"})
	d := n.dataset(t)
	b, err := n.maker.batches(d.Default, d.Version, []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 2}, {Host: "c", Ranks: 1}})
	if err != nil || b.slabs == nil {
		t.Fatalf("batches are made of chunks: %v, %v", err == nil && b.slabs != nil, err)
	}
	unknown := newChunkSlabs(d.Version, nil)
	for _, host := range []string{"a", "b", "c"} {
		k.Owners.Self, _ = k.Owners.At(host)
		for chunk := range 4 {
			if got := b.slabs.series.Ahead && b.slabs.series.Own(uint64(chunk)); got != (b.Chunks.Owner(chunk) == k.Owners.Self) {
				t.Errorf("chunk %d is fetched ahead on %s: %v", chunk, host, got)
			}
		}
	}
	if unknown.series.Ahead {
		t.Error("chunks are fetched ahead for no known rank")
	}
	if chunks, err := b.slabs.AppendChunks(nil, 0, 2); err != nil || !slices.Equal(chunks, []int{2}) {
		t.Errorf("step 2 is the chunks %v, %v", chunks, err)
	}
}

// An open that is the first of its part of an epoch waits until that is divided, and that is
// accounted for; the next opens of the part do not wait.
func TestDivisionIsAccountedFor(t *testing.T) {
	k := catalogtest.New(t, 1)
	k.Up()
	n := viewsOf(t, k, "ranks=2,batch=chunk,order=full", 3, []string{"a"}, []string{"a"}, []string{"b"}, []string{"b"})
	d := n.dataset(t)
	b, err := n.maker.batches(d.Default, d.Version, []plan.Seat{{Host: "a", Ranks: 1}, {Host: "b", Ranks: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var now time.Time
	table := stall.NewTable(func() time.Time { now = now.Add(time.Second); return now })
	var waits [2]time.Duration
	for step := range uint64(2) {
		open := table.Open("job", 0)
		if key := b.keyFor(&open, 0, step); key != b.Key(0, step) {
			t.Errorf("step %d is %v", step, key)
		}
		open.Done(1, nil)
		is := table.Report().Jobs[0].Totals
		if waits[step] = is.Wait[stall.Overhead]; is.Opens != step+1 || is.Waited != 1 {
			t.Errorf("after step %d: %+v", step, is)
		}
	}
	if waits[0] == 0 || waits[1] != waits[0] {
		t.Errorf("the two have waited %v", waits)
	}
}
