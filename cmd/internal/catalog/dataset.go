package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cmd/internal/control"
	"rankfs/fetch/batch"
	"rankfs/meta"
)

// A Dataset is one version of a registered dataset. It never changes.
type Dataset struct {
	Registration
	Default    meta.View // what its name alone stands for
	Generation uint64    // of the cluster's state
	Version    *batch.Version
}

// A Registration is a dataset as the cluster keeps it, without the index.
type Registration struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"`
	Root    string    `json:"root,omitempty"`     // the source that has the bytes, if it is made of another dataset
	View    string    `json:"view"`               // the options of the default view, all of them
	ByChunk bool      `json:"by_chunk,omitempty"` // records need not be counted
	Origin  string    `json:"origin"`             // the node that indexed it, or what it is made of: it has what others may not
	Created time.Time `json:"created"`
	Indexed time.Time `json:"indexed"`
}

// Reindex says what to do where the source of a dataset has changed, and on which host, if
// it is another one's. A dataset that was removed has another name, or is indexed already.
func Reindex(err error, name string, s *batch.Source) error {
	if errors.Is(err, batch.ErrRemoved) || !errors.Is(err, meta.ErrStale) {
		return err
	}
	on := ""
	if host := s.Where(); host != "" {
		on = " on host " + host
	}
	if errors.Is(err, meta.ErrGone) {
		return fmt.Errorf("%w; %s", err, bringBack(on, name))
	}
	return fmt.Errorf("%w; index it again%s with: rankfs dataset refresh %s", err, on, name)
}

// bringBack says what to do where nothing is left of a source.
func bringBack(on, name string) string {
	return fmt.Sprintf("bring it back%s, or remove the dataset with: rankfs dataset rm %s", on, name)
}

// reindex is Reindex for this dataset.
func (d *Dataset) reindex(err error) error { return Reindex(err, d.Name, &d.Version.Source) }

// Stale says that the source has changed, and what to do, if the last check found that;
// each open makes one. It asks no source.
func (d *Dataset) Stale() error {
	err := d.Version.Source.Stale()
	if err == nil || errors.Is(err, batch.ErrRemoved) {
		return nil
	}
	return d.reindex(err)
}

// Changed is Stale after one more look at the source, as an open of a batch takes.
func (d *Dataset) Changed(ctx context.Context) error {
	_ = d.Version.Source.Check(ctx) // any other reason is said where bytes are needed
	return d.Stale()
}

// Describe describes the dataset, and says whether it can be read.
func (d *Dataset) Describe(ctx context.Context) control.Dataset {
	x, v := d.Version.Index, d.Default
	cut := v.Cut(x.Records(), x.Bytes(), uint64(x.Chunks()))
	records := uint64(0)
	if !v.ByChunk() {
		records = cut.Largest()
	}
	c := control.Dataset{
		Name: d.Name, Source: d.Source, Root: d.Root, State: "ready", Version: x.Fingerprint(),
		Records: x.Records(), Bytes: x.Bytes(), Chunks: x.Chunks(),
		Ranks: v.Ranks, Batch: v.Batch().String(), BatchSize: records, Steps: cut.Steps(),
		Order: v.Order.String(), Seed: v.Seed, Tail: v.Tail.String(),
		Created: d.Created, IndexBytes: x.FileBytes(), Notes: x.Notes(),
	}
	if err := d.Version.Source.Check(ctx); err != nil {
		c.State, c.Reason = "stale", meta.Plain(d.reindex(err))
		if !errors.Is(err, meta.ErrStale) {
			c.State = "unreadable"
		}
	}
	return c
}
