package views

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"rankfs/cache"
	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/fetch/batch"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// unwatched views are watched by a test that does not look.
type unwatched struct{}

func (unwatched) Planned(*Batches)          {}
func (unwatched) Found(meta.View, *Batches) {}

// viewsOf are those of the first node of a cluster that has one dataset, d, whose chunks
// are so many records of 10 bytes each on the hosts of their number.
func viewsOf(t testing.TB, k *catalogtest.Cluster, view string, records uint64, chunks ...[]string) *Views {
	t.Helper()
	return served(t, k, k.Catalog("hdfs:///f", view, catalogtest.Index(t, nil, records, chunks...)), 16<<20)
}

// served are the views of a catalog, with a cache of so many bytes.
func served(t testing.TB, k *catalogtest.Cluster, c *catalog.Catalog, ram int64) *Views {
	t.Helper()
	sizes, err := batch.NewSizes()
	if err != nil {
		t.Fatal(err)
	}
	log, stalls := slog.New(slog.DiscardHandler), stall.NewTable(time.Now)
	n := New(Config{
		Host: "a", RAM: ram, Slab: ram, Catalog: c, State: k.State, Cluster: k, Owners: k.Owners, Sizes: sizes, Stalls: stalls,
		Drop: func(string) {}, Log: log,
	})
	memory, err := cache.New(cache.Config{RAMBytes: ram, Log: log, Stalls: stalls})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.Start(ctx, memory, unwatched{})
	t.Cleanup(func() {
		cancel()
		n.Wait()
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
		sizes.Close()
	})
	return n
}

// dataset is d.
func (vs *Views) dataset(t testing.TB) *catalog.Dataset {
	t.Helper()
	d, err := vs.config.Catalog.Get("d")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
