package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/views"
	"rankfs/meta"
	"rankfs/meta/state"
)

// datasets reports registered datasets, and has the catalog change them.
type datasets struct {
	catalog *catalog.Catalog
	views   *views.Views
	rights  rights
	log     *slog.Logger
}

// Datasets lists the registered datasets.
func (n *datasets) Datasets() []control.Dataset {
	list := n.catalog.List()
	all := make([]control.Dataset, len(list))
	atOnce(len(list), func(i int) { all[i] = n.describe(context.Background(), list[i]) })
	return all
}

// Dataset describes one dataset.
func (n *datasets) Dataset(name string) (control.Dataset, error) {
	d, err := n.catalog.Get(name)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.describe(context.Background(), d), nil
}

// faults are datasets whose source has changed since they were indexed: ranks that open a
// batch of one get an error until it is refreshed. They are known by earlier checks:
// no source is asked.
func (n *datasets) faults() (all []fault) {
	for _, d := range n.catalog.List() {
		said := unreadable(d, d.Stale())
		if said == "" {
			continue
		}
		if len(all) == maxWarned {
			return append(all, fault{"stale", "", "the sources of more datasets have changed; see: rankfs dataset ls"})
		}
		all = append(all, fault{"stale", d.Name, said})
	}
	return all
}

// unreadable says that no rank can open a batch of a dataset, if its source has changed.
func unreadable(d *catalog.Dataset, changed error) string {
	if changed == nil {
		return ""
	}
	return control.Unreadable(d.Name, meta.Plain(changed))
}

// describe says of a dataset also what this node has to say.
func (n *datasets) describe(ctx context.Context, d *catalog.Dataset) control.Dataset {
	c := d.Describe(ctx)
	if said := n.views.Warnings(d.Default, d.Version); len(said) > 0 {
		maps.Copy(said, c.Notes)
		c.Notes = said
	}
	return c
}

// Explain looks a view up as the mount does. There a name that stands for
// nothing is an errno.
func (n *datasets) Explain(ctx context.Context, r control.ExplainRequest) (control.Explanation, error) {
	s, err := n.views.Open(r.Name)
	if err != nil {
		return control.Explanation{}, err
	}
	v := s.Batches()
	x := v.Version.Index
	e := control.Explanation{
		ViewName: control.NameOf(s.Called()), Ranks: v.Cut().Ranks, Steps: v.Cut().Steps(),
		Records: x.Records(), Bytes: x.Bytes(), Warning: cmp.Or(unreadable(s.Of(), s.Of().Changed(ctx)), n.views.Memory.ShortageOf(v.View(), v.Version), n.views.Memory.Warning(v.View(), v.Version)),
	}
	if r.Nodes > 0 {
		need := n.views.Memory.Need(v.View(), v.Version, (e.Ranks+uint64(r.Nodes)-1)/uint64(r.Nodes))
		e.NodeBytes, e.LargestBytes = need.Bytes, need.Largest
	}
	return e, nil
}

// Create registers a dataset, indexing its source.
func (n *datasets) Create(ctx context.Context, r control.CreateRequest, progress func(control.Progress)) (control.Dataset, error) {
	d, err := n.catalog.Create(ctx, r, progress)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.indexed(ctx, d), nil
}

// Refresh indexes the source of a dataset again, as it is now.
func (n *datasets) Refresh(ctx context.Context, r control.RefreshRequest, progress func(control.Progress)) (control.Dataset, error) {
	d, err := n.catalog.Refresh(ctx, r, progress)
	if err != nil {
		return control.Dataset{}, err
	}
	return n.indexed(ctx, d), nil
}

// indexed describes a dataset that was indexed just now, and has the log warn if its
// batches are too large for this node.
func (n *datasets) indexed(ctx context.Context, d *catalog.Dataset) control.Dataset {
	c := n.describe(ctx, d)
	if short := c.Notes["memory"]; short != "" {
		n.log.Warn("ranks that read together will not find room", "dataset", d.Name, "cause", short)
	}
	return c
}

// Remove forgets a dataset.
func (n *datasets) Remove(name string) error {
	err := n.catalog.Remove(context.Background(), name)
	if errors.Is(err, meta.ErrNotExist) {
		return n.rights.orDenied(&state.RemoveDataset{}, err)
	}
	return err
}

// Verify reads every record of a dataset back.
func (n *datasets) Verify(ctx context.Context, name string, progress func(control.Progress)) (control.Verification, error) {
	d, err := n.catalog.Get(name)
	if err != nil {
		return control.Verification{}, err
	}
	v, err := d.Verify(ctx, progress)
	if err != nil {
		return v, fmt.Errorf("verify dataset %s: %w", name, err)
	}
	return v, nil
}
