package node

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"

	"rankfs/cmd/internal/control"
	"rankfs/fetch"
	"rankfs/fetch/batch"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/shuffle/plan"
)

// A dataset is one version of a registered dataset.
type dataset struct {
	record     record
	view       meta.View
	generation uint64 // of the cluster's state
	hash       string // of the index
	version    *batch.Version
}

func newDataset(path string, r record, d state.Dataset, env *fetch.Env, o *plan.Owners) (*dataset, error) {
	view, err := meta.View{Dataset: r.Name, Ranks: 1}.With(r.View)
	if err != nil {
		return nil, fmt.Errorf("record of dataset %s %w: %w", r.Name, meta.ErrCorrupt, err)
	}
	v, err := batch.Open(path, batch.Config{Source: r.Source, Origin: r.Origin, Hash: d.Index, Env: env, Owners: o})
	if err != nil {
		return nil, err
	}
	return &dataset{r, view, d.Generation, d.Index, v}, nil
}

// A chunked source can say where its chunks are long before it has counted the
// records in them.
type chunked interface {
	ByChunk(ctx context.Context) (bool, error)
}

// A copying source brings its bytes here before it can scan them.
type copying interface {
	Copy(ctx context.Context, done func(bytes, total int64)) error
}

// sought adds the next step to the error of a source that is not there.
func sought(source string, err error) error {
	if !errors.Is(err, meta.ErrNotExist) && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	u, bad := uri.Parse(source)
	if bad != nil {
		return err
	}
	next := "look for it on this node with: ls -l " + u.Path
	if u.Scheme == uri.HDFS {
		next = "look for it with: hdfs dfs -ls hdfs://" + u.Authority + u.Path
	}
	return &meta.Told{Kind: "not_exist", Message: fmt.Sprintf("%v; %s", err, next)}
}

func makeIndex(ctx context.Context, r record, src fetch.Source, path string, report reporter) error {
	if c, ok := src.(copying); ok {
		err := c.Copy(ctx, func(bytes, total int64) {
			report(control.Progress{Stage: "copying", Bytes: bytes, Total: total})
		})
		if err != nil {
			return err
		}
	}
	if c, ok := src.(chunked); ok && r.ByChunk {
		if _, err := c.ByChunk(ctx); err != nil {
			return err
		}
	}
	return fetch.Build(ctx, src, path, func(bytes, total int64, records uint64) {
		report(control.Progress{Stage: "indexing", Bytes: bytes, Total: total, Records: records})
	})
}

// reindex says what to do where the source of a dataset has changed. One that was
// removed has another name, or is indexed already.
func reindex(err error, name string) error {
	if errors.Is(err, batch.ErrRemoved) || !errors.Is(err, meta.ErrStale) {
		return err
	}
	return fmt.Errorf("%w; index it again with: rankfs dataset refresh %s", err, name)
}

// describe says what is known of the dataset, and whether it can be read.
func (d *dataset) describe(ctx context.Context) control.Dataset {
	x := d.version.Index
	cut := d.view.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	batch := meta.BatchSize{Unit: d.view.Step.Unit, N: d.view.Step.N / max(1, d.view.Ranks)}
	records := uint64(0)
	if batch.Unit != meta.UnitChunk {
		records = (cut.Global + cut.Ranks - 1) / cut.Ranks
	}
	c := control.Dataset{
		Name: d.record.Name, Source: d.record.Source, State: "ready", Version: x.Fingerprint(),
		Records: x.Records(), Bytes: x.Bytes(), Chunks: x.Chunks(),
		Ranks: d.view.Ranks, Batch: batch.String(), BatchSize: records, Steps: cut.Steps(),
		Order: d.view.Order.String(), Seed: d.view.Seed, Tail: d.view.Tail.String(),
		Created: d.record.Created, IndexBytes: x.FileBytes(), Notes: x.Notes(),
	}
	if _, err := d.version.Source.Data(ctx); err != nil && d.version.Source.Elsewhere() == "" {
		c.State, c.Reason = "stale", reindex(err, c.Name).Error()
		if !errors.Is(err, meta.ErrStale) {
			c.State = "unreadable"
		}
	}
	return c
}
