package kept

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
	"rankfs/meta/stall"
	"rankfs/meta/state"
)

// unwatched views are watched by a test that does not look.
type unwatched struct{}

func (unwatched) Planned(*views.Batches)          {}
func (unwatched) Found(meta.View, *views.Batches) {}

// keeping is what a node on a host keeps in a cache of so many bytes.
func keeping(k *catalogtest.Cluster, c *catalog.Catalog, host string, memory *cache.Cache, ram int64) *Kept {
	log := slog.New(slog.DiscardHandler)
	v := views.New(views.Config{
		Host: host, RAM: ram, Catalog: c, State: k.State, Cluster: k, Owners: k.Owners, Stalls: stall.NewTable(time.Now), Log: log,
	})
	v.Start(context.Background(), memory, unwatched{})
	return New(Config{Catalog: c, Views: v, Owners: k.Owners, Log: log})
}

// sharers are the views of the nodes on hosts a, b and c, all up, with replicas of four
// chunks. One batch is made of chunks where these stay in the cache.
func sharers(t *testing.T, chunks bool) (on func(host, name string) *views.View, of *Kept) {
	t.Helper()
	ram := map[bool]int64{true: 16 << 20, false: 0}[chunks]
	memory, err := cache.New(cache.Config{RAMBytes: 16 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	k := catalogtest.New(t, 3)
	k.Up()
	c := k.Catalog("hdfs:///f", "ranks=4,batch=2", catalogtest.Index(t, nil, 6, []string{"a", "b"}, []string{"a", "b"}, []string{"b", "c"}, []string{"c"}))
	of = keeping(k, c, "a", memory, ram)
	nodes := []string{catalogtest.Node(0).ID, catalogtest.Node(1).ID, catalogtest.Node(1).ID, catalogtest.Node(2).ID}
	d, err := c.Get("d")
	if err != nil {
		t.Fatal(err)
	}
	k.Apply(&state.Settle{View: d.Default.String(), Generation: d.Generation, Nodes: state.RunsOf(nodes)})
	return func(host, name string) *views.View {
		t.Helper()
		k.Owners.Self, _ = k.Owners.At(host)
		v, err := keeping(k, c, host, memory, ram).slabs.Views.Open(name)
		if err != nil || (v.Batches().Chunks != nil) != chunks && name == "d" {
			t.Fatalf("%s of chunks %v, on %s: %v", name, chunks, host, err)
		}
		return v
	}, of
}

// A node whose ranks read nothing of a view is told that others have them.
func TestNothingIsSharedHere(t *testing.T) {
	on, _ := sharers(t, false)
	for host, elsewhere := range map[string]bool{"a": false, "c": true} {
		v := on(host, "d@ranks=1")
		s, err := shareOf(v, nil)
		if err != nil || s.elsewhere(v) != elsewhere || (s.count() == 0) != elsewhere {
			t.Errorf("%s: %+v, %v", host, s, err)
		}
	}
}

// What the nodes of a cluster are to have is all there is, each batch or chunk
// on one of them, and what is read first comes first.
func TestShares(t *testing.T) {
	for name, parts := range map[string]bool{"batches": false, "chunks": true} {
		t.Run(name, func(t *testing.T) {
			on, _ := sharers(t, parts)
			got, bytes := make(map[[2]uint64]int), int64(0)
			for _, host := range []string{"a", "b", "c"} {
				s, err := shareOf(on(host, "d"), nil)
				if err != nil || s.kind != name || s.count() == 0 {
					t.Fatalf("%s: %+v, %v", host, s, err)
				}
				last := uint64(0)
				for i := range s.count() {
					rank, step := s.at(i)
					if got[[2]uint64{rank, step}]++; step < last {
						t.Errorf("%s: step %d comes after %d", host, step, last)
					}
					last = step
				}
				bytes += s.bytes
			}
			want := make(map[[2]uint64]int)
			for rank := range uint64(4) {
				for step := range uint64(3) {
					want[[2]uint64{rank, step}] = 1
				}
			}
			if parts {
				want = map[[2]uint64]int{{0, 0}: 1, {0, 1}: 1, {0, 2}: 1, {0, 3}: 1}
			}
			if !maps.Equal(got, want) || bytes != 240 {
				t.Errorf("%d bytes of %v, want 240 of %v", bytes, got, want)
			}
		})
	}
}

func TestShareOfARank(t *testing.T) {
	on, _ := sharers(t, false)
	v := on("a", "d")
	for rank, want := range map[uint64]error{0: nil, 3: nil, 4: meta.ErrInvalid} {
		s, err := shareOf(v, &rank)
		if !errors.Is(err, want) || err == nil && (s.count() != v.Batches().Steps() || s.bytes != 60) {
			t.Errorf("rank %d: %+v, %v", rank, s, err)
		}
	}
	rank := uint64(0)
	chunked, _ := sharers(t, true)
	if _, err := shareOf(chunked("a", "d"), &rank); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("of chunks: %v", err)
	}
}

// What is kept of a view goes by its chunks where there are some, and by the same
// name in all views that have them.
func TestWhatIsKept(t *testing.T) {
	on, _ := sharers(t, false)
	whole := on("a", "d").Batches()
	on, n := sharers(t, true)
	parts, chunks := on("a", "d").Batches(), on("a", "d@batch=chunk,epoch=3,order=full").Batches()
	if series, kind := cachedAs(whole); kind != control.Batches || series[0] != whole.ID() {
		t.Errorf("batches are kept as %s", kind)
	}
	one, kind := cachedAs(parts)
	other, alike := cachedAs(chunks)
	if kind != control.Chunks || alike != kind || one[0] != other[0] {
		t.Errorf("%s %x, and %s %x", kind, one, alike, other)
	}
	n.name(parts)
	n.name(chunks)
	if got := n.nameOfSeries(n.named(one[0])); got != control.NameOf("d", "d") {
		t.Errorf("the chunks are called %q", got)
	}
	if got := n.nameOfSeries(n.named(chunks.ID())); got.View != "d@epoch=3,order=full,batch=chunk" || got.Full != chunks.View().String() {
		t.Errorf("the batches are called %q", got)
	}
}
