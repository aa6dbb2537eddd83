package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"rankfs/meta"
)

// datasets is the table of datasets, by name.
type datasets struct {
	table[string, *Dataset]
	records int64 // bytes of all
}

func (s *state) datasets() *datasets { return part[*datasets](s) }

func (*datasets) commands() []command {
	return []command{
		{kind: 10, blank: blank[PutDataset], by: members},
		{kind: 11, blank: blank[RemoveDataset], by: operators},
	}
}

func (t *datasets) share() section { return &datasets{table: t.table.share()} }

func (t *datasets) over() bool { return t.len() > MaxDatasets || t.records > MaxRecords }

type datasetFrame struct {
	Dataset
	Record []byte // to the byte, which JSON in JSON is not
}

func (t *datasets) write(f *frameWriter) {
	for _, d := range sorted(&t.table) {
		f.json('d', datasetFrame{*d, d.Record})
	}
}

func (*datasets) restore(in *restorer) frames { return frames{'d': each(in.dataset)} }

func (in *restorer) dataset(frame datasetFrame) error {
	d := frame.Dataset
	d.Record = frame.Record
	put := PutDataset{Name: d.Name, Record: d.Record, Index: d.Index, IndexBytes: d.IndexBytes}
	_, twice := in.s.datasets().get(d.Name)
	order := d.Before < d.Generation && d.Generation <= in.s.Generation
	if err := first(put.check(), must(!twice, errTwice), must(order && json.Valid(d.Record), errWrong)); err != nil {
		return err
	}
	in.s.addDataset(&d)
	return nil
}

// A Dataset is what was registered under a name.
type Dataset struct {
	Name       string
	Record     json.RawMessage // how to read it; opaque to the machine
	Index      string          // hash of its index file
	IndexBytes int64
	Generation uint64 // grows with every change of any dataset
	Before     uint64 // the generation that it replaced; zero if none
	Registered int64  // time of the cluster
}

// PutDataset registers a dataset (Generation 0: there must be none of the
// name) or replaces the one of that generation. What is registered already,
// with the same index and record, is left as it is.
type PutDataset struct {
	Entry
	Name       string
	Record     json.RawMessage
	Index      string
	IndexBytes int64
	Generation uint64 `json:",omitempty"`
}

func (c *PutDataset) check() error {
	if len(c.Record) > MaxRecord || len(c.Record) == 0 {
		return fmt.Errorf("record of dataset %q %w: %d bytes; it has 1 to %d", shorten(c.Name), meta.ErrInvalid, len(c.Record), MaxRecord)
	}
	if c.IndexBytes < 0 {
		return fmt.Errorf("index of dataset %q %w: %d bytes", shorten(c.Name), meta.ErrInvalid, c.IndexBytes)
	}
	return first(meta.CheckName(c.Name), checkHash("index", c.Index))
}

func (c *PutDataset) apply(s *state) (Result, error) {
	old, ok := s.datasets().get(c.Name)
	if ok && c.isDone(old) {
		return Result{Generation: old.Generation}, nil
	}
	if err := c.mayReplace(s, old); err != nil {
		return Result{}, fmt.Errorf("register dataset %q: %w", c.Name, err)
	}
	s.Generation++
	d := &Dataset{
		Name: c.Name, Record: c.Record, Index: c.Index, IndexBytes: c.IndexBytes,
		Generation: s.Generation, Before: c.Generation, Registered: s.Now,
	}
	s.addDataset(d)
	if ok {
		s.forget(old)
	}
	s.changed.cluster = true
	return Result{Generation: d.Generation}, nil
}

// isDone reports whether d is what c asks for already: c is a repetition, or another
// node has registered the same.
func (c *PutDataset) isDone(d *Dataset) bool {
	same := d.Index == c.Index && d.IndexBytes == c.IndexBytes && bytes.Equal(d.Record, c.Record)
	return same && (c.Generation == 0 || c.Generation == d.Generation || c.Generation == d.Before)
}

func (c *PutDataset) mayReplace(s *state, old *Dataset) error {
	var before, bytes int
	if old != nil {
		before, bytes = 1, len(old.Record)
	}
	switch {
	case old != nil && c.Generation == 0:
		return fmt.Errorf("%w: remove it, or replace its generation %d", meta.ErrExist, old.Generation)
	case old == nil && c.Generation != 0:
		return fmt.Errorf("%w: generation %d was removed; register it anew", meta.ErrStale, c.Generation)
	case old != nil && c.Generation != old.Generation:
		return fmt.Errorf("%w: it is at generation %d, not %d; look at it again", meta.ErrStale, old.Generation, c.Generation)
	case s.datasets().len()-before >= MaxDatasets:
		return fmt.Errorf("%w: there are %d datasets; remove some", meta.ErrBusy, MaxDatasets)
	case s.datasets().records-int64(bytes)+int64(len(c.Record)) > MaxRecords:
		return fmt.Errorf("%w: records have %d bytes; remove some datasets", meta.ErrBusy, s.datasets().records)
	}
	return nil
}

func (s *state) addDataset(d *Dataset) {
	s.datasets().set(d.Name, d)
	s.datasets().records += int64(len(d.Record))
}

// forget drops all that was of a generation of a dataset.
func (s *state) forget(d *Dataset) {
	s.datasets().records -= int64(len(d.Record))
	s.dropPlans(d.Name)
	s.dropJobs(d.Name)
	s.dropQueues(d.Name)
}

// current is the dataset of that name, if it is at that generation.
func (s *state) current(name string, generation uint64) (*Dataset, error) {
	d, ok := s.datasets().get(name)
	if !ok {
		return nil, fmt.Errorf("dataset %q %w", name, meta.ErrNotExist)
	}
	if d.Generation != generation {
		return nil, fmt.Errorf("dataset %q: %w: it is at generation %d, not %d; open it again",
			name, meta.ErrStale, d.Generation, generation)
	}
	return d, nil
}

// RemoveDataset forgets a dataset. One that is not there is removed.
type RemoveDataset struct {
	Entry
	Name       string
	Generation uint64
}

func (c *RemoveDataset) check() error { return meta.CheckName(c.Name) }

func (c *RemoveDataset) apply(s *state) (Result, error) {
	if _, ok := s.datasets().get(c.Name); !ok {
		return Result{}, nil
	}
	d, err := s.current(c.Name, c.Generation)
	if err != nil {
		return Result{}, err
	}
	s.datasets().drop(d.Name)
	s.forget(d)
	s.changed.cluster = true
	return Result{}, nil
}
