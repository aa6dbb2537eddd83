package admin

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/fetch/batch"
	"rankfs/fetch/hdfs"
	"rankfs/meta"
	"rankfs/meta/group"
	"rankfs/meta/stall"
	"rankfs/meta/state"
	"rankfs/meta/trust"
	"rankfs/shuffle/plan"
)

// alone is a cluster whose nodes are asked nothing.
type alone struct{ *catalogtest.Cluster }

func (alone) Status() group.Status                    { return group.Status{} }
func (alone) Silent() []string                        { return nil }
func (alone) Missing() []string                       { return nil }
func (alone) Unwritten() error                        { return nil }
func (alone) Ready(context.Context) error             { return nil }
func (alone) DropToken(context.Context, string) error { return meta.ErrUnavailable }
func (alone) MakeToken(context.Context, time.Duration, int, state.Role) (t trust.Token, err error) {
	return t, meta.ErrUnavailable
}

func (alone) Ask(context.Context, string, string, any, any) error { return meta.ErrUnavailable }

// unwatched views are watched by a test that does not look.
type unwatched struct{}

func (unwatched) Planned(*views.Batches)          {}
func (unwatched) Found(meta.View, *views.Batches) {}

// planner answers for a node that does not run, on host a, with one dataset, d, whose
// chunks are so many records of 10 bytes each on the hosts of their number.
func planner(t testing.TB, k *catalogtest.Cluster, view string, records uint64, chunks ...[]string) *Admin {
	t.Helper()
	return plannerInRacks(t, k, nil, view, records, chunks...)
}

// plannerInRacks is planner with hosts in racks.
func plannerInRacks(t testing.TB, k *catalogtest.Cluster, racks map[string]string, view string, records uint64, chunks ...[]string) *Admin {
	t.Helper()
	return answering(k, k.Catalog("hdfs:///f", view, catalogtest.Index(t, racks, records, chunks...)), "a")
}

// answering answers for a node on a host.
func answering(k *catalogtest.Cluster, c *catalog.Catalog, host string) *Admin {
	drop, log := func(string) {}, slog.New(slog.DiscardHandler)
	v := views.New(views.Config{
		Host: host, RAM: 64 << 20, Slab: 64 << 20, Catalog: c, State: k.State, Cluster: k, Owners: k.Owners, Stalls: stall.NewTable(time.Now), Drop: drop, Log: log,
	})
	v.Start(context.Background(), nil, unwatched{})
	return New(Config{Host: host, State: k.State, Group: alone{k}, HDFS: new(hdfs.Clusters), Catalog: c, Views: v, Drop: drop, Log: log})
}

// dataset is d.
func (a *Admin) dataset(t testing.TB) *catalog.Dataset {
	t.Helper()
	d, err := a.datasets.catalog.Get("d")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// batchesOf are those of a view whose ranks are anywhere.
func batchesOf(v meta.View, of *batch.Version, sizes *batch.Sizes) *views.Batches {
	return &views.Batches{Batches: &batch.Batches{Plan: plan.New(v, of.Plans), Version: of, Sizes: sizes}}
}

func (a *Admin) mustPlan(t testing.TB, r control.PlanRequest) control.Survey {
	t.Helper()
	p, err := a.Plan(context.Background(), r)
	if err != nil {
		t.Fatalf("Plan(%+v): %v", r, err)
	}
	p.Warning = "" // that the source is not there, as it is not in these tests
	return p
}
