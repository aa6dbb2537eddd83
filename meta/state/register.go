package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"rankfs/meta"
)

func (*datasets) commands() []command {
	return []command{
		{kind: 10, blank: blank[PutDataset], by: members},
		{kind: 11, blank: blank[RemoveDataset], by: operators},
	}
}

func (t *datasets) share() sharer { return &datasets{table: t.table.share()} }

func (t *datasets) over() bool { return t.len() > MaxDatasets || t.registrations > MaxRegistrations }

type datasetFrame struct {
	Dataset
	Registration []byte `json:"Record"` // to the byte, which JSON in JSON is not
}

func (t *datasets) write(f *frameWriter) {
	for _, d := range sorted(&t.table) {
		f.json('d', datasetFrame{*d, d.Registration})
	}
}

func (*datasets) restore(in *restorer) frames { return frames{'d': each(in.dataset)} }

func (in *restorer) dataset(frame datasetFrame) error {
	d := frame.Dataset
	d.Registration = frame.Registration
	put := PutDataset{Name: d.Name, Registration: d.Registration, Index: d.Index, IndexBytes: d.IndexBytes, Bases: d.Bases, Stage: d.Stage}
	_, twice := in.s.datasets().get(d.Name)
	order := d.Before < d.Generation && d.Generation <= in.s.Generation
	if err := first(put.check(), must(!twice, errTwice), must(order && json.Valid(d.Registration), errWrong)); err != nil {
		return err
	}
	in.s.datasets().add(&d)
	return nil
}

// PutDataset registers a dataset (Generation 0: there must be none of the
// name) or replaces the one of that generation. What is registered already,
// with the same index and registration, is left as it is.
type PutDataset struct {
	Entry
	Name         string
	Registration json.RawMessage `json:"Record"`
	Index        string
	IndexBytes   int64
	Generation   uint64   `json:",omitempty"`
	Bases        []string `json:",omitempty"` // that it is made of, in order; they stay while it is there

	// A stage of the shuffle pool that it is made of, by its number and as of which generation;
	// it stays while the dataset is there, though it may be reset. Zero: none.
	Stage           uint64 `json:",omitempty"`
	StageGeneration uint64 `json:",omitempty"`
}

func (c *PutDataset) since() int {
	if len(c.Bases) > 0 || c.Stage > 0 {
		return Derived
	}
	return Oldest
}

func (c *PutDataset) check() error {
	for i, name := range c.Bases {
		if len(c.Bases) > MaxBases || name == c.Name || i > 0 && name <= c.Bases[i-1] || meta.CheckName(name) != nil {
			return fmt.Errorf("dataset %q made of %d, one of them %q, %w", shorten(c.Name), len(c.Bases), shorten(name), meta.ErrInvalid)
		}
	}
	if len(c.Registration) > MaxRegistration || len(c.Registration) == 0 {
		return fmt.Errorf("registration of dataset %q %w: %d bytes; it has 1 to %d", shorten(c.Name), meta.ErrInvalid, len(c.Registration), MaxRegistration)
	}
	if c.IndexBytes < 0 {
		return fmt.Errorf("index of dataset %q %w: %d bytes", shorten(c.Name), meta.ErrInvalid, c.IndexBytes)
	}
	return first(meta.CheckName(c.Name), checkHash("index", c.Index))
}

// datasetResult is what a PutDataset came to.
type datasetResult struct{ Generation uint64 }

// Generation is that of the dataset now, of PutDataset.
func (r Result) Generation() uint64 { return came[datasetResult](r).Generation }

func (c *PutDataset) apply(s *state) (Result, error) {
	old, ok := s.datasets().get(c.Name)
	if ok && c.isDone(old) {
		return Result{datasetResult{old.Generation}}, nil
	}
	if err := c.mayReplace(s, old); err != nil {
		return Result{}, fmt.Errorf("register dataset %q: %w", c.Name, err)
	}
	s.Generation++
	d := &Dataset{
		Name: c.Name, Registration: c.Registration, Index: c.Index, IndexBytes: c.IndexBytes,
		Generation: s.Generation, Before: c.Generation, Registered: s.Now, Bases: c.Bases, Stage: c.Stage,
	}
	s.datasets().add(d)
	if ok {
		s.forget(old)
	}
	s.changed.cluster = true
	return Result{datasetResult{d.Generation}}, nil
}

// isDone reports whether d is what c asks for already: c is a repetition, or another
// node has registered the same.
func (c *PutDataset) isDone(d *Dataset) bool {
	same := d.Index == c.Index && d.IndexBytes == c.IndexBytes && bytes.Equal(d.Registration, c.Registration)
	return same && (c.Generation == 0 || c.Generation == d.Generation || c.Generation == d.Before)
}

func (c *PutDataset) mayReplace(s *state, old *Dataset) error {
	var before, bytes int
	if old != nil {
		before, bytes = 1, len(old.Registration)
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
	case s.datasets().registrations-int64(bytes)+int64(len(c.Registration)) > MaxRegistrations:
		return fmt.Errorf("%w: registrations have %d bytes; remove some datasets", meta.ErrBusy, s.datasets().registrations)
	}
	return first(c.mayBeMade(s), c.mayHold(s))
}

// mayBeMade says why a dataset cannot be made of others: one is not there, or is made of
// it.
func (c *PutDataset) mayBeMade(s *state) error {
	seen := make(map[string]bool)
	for todo := slices.Clone(c.Bases); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d, ok := s.datasets().get(name)
		switch {
		case name == c.Name:
			return fmt.Errorf("%w: it would be made of itself", meta.ErrInvalid)
		case !ok:
			return fmt.Errorf("dataset %q, of which it is made, %w", name, meta.ErrNotExist)
		case !seen[name]:
			seen[name] = true
			todo = append(todo, d.Bases...)
		}
	}
	return nil
}

// mayHold says why a dataset cannot be made of its stage of the shuffle pool: that has
// changed since it was read.
func (c *PutDataset) mayHold(s *state) error {
	if c.Stage == 0 {
		return nil
	}
	name, _ := s.pool().names.get(c.Stage)
	g, err := name.of(s)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the stage of the shuffle pool of which it is made was removed", meta.ErrStale)
	case !g.Sealed || g.Generation != c.StageGeneration:
		return fmt.Errorf("%w: stage %s/%s of the shuffle pool, of which it is made, was reset", meta.ErrStale, name.Job, name.Name)
	}
	return nil
}

// forget drops all that was of a generation of a dataset.
func (s *state) forget(d *Dataset) {
	s.datasets().registrations -= int64(len(d.Registration))
	for one := range having[interface{ datasetGone(*state, *Dataset) }](s) {
		one.datasetGone(s, d)
	}
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
	d, err := s.datasets().at(c.Name, c.Generation)
	if err != nil {
		return Result{}, err
	}
	if err := inUse(fmt.Sprintf("dataset %q", d.Name), s.datasets().madeOf(d.Name)); err != nil {
		return Result{}, err
	}
	s.datasets().drop(d.Name)
	s.forget(d)
	s.changed.cluster = true
	return Result{}, nil
}

// madeOf are the datasets that are made of one, in order.
func (t *datasets) madeOf(base string) (names []string) {
	for name, d := range sorted(&t.table) {
		if slices.Contains(d.Bases, base) {
			names = append(names, name)
		}
	}
	return names
}
