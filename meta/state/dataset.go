package state

import (
	"encoding/json"
	"fmt"

	"rankfs/meta"
)

const (
	MaxDatasets      = 1 << 16
	MaxRegistration  = 64 << 10 // bytes of one dataset's registration
	MaxRegistrations = 64 << 20 // bytes of all
	MaxBases         = 16       // that a dataset is made of
)

// A Dataset is a registration.
type Dataset struct {
	Name         string
	Registration json.RawMessage `json:"Record"` // how to read it; opaque to the machine
	Index        string          // hash of its index file
	IndexBytes   int64
	Generation   uint64 // grows with every change of any dataset
	Before       uint64 // the generation that it replaced; zero if none
	Registered   int64  // time of the cluster

	Bases []string `json:",omitempty"` // datasets that it is made of, by name
	Stage uint64   `json:",omitempty"` // of the shuffle pool that it is made of, by number; zero: none
}

// datasets is the table of datasets, by name.
type datasets struct {
	table[string, *Dataset]
	registrations int64 // bytes of all
}

func (s *state) datasets() *datasets { return sectionOf[*datasets](s) }

func (t *datasets) add(d *Dataset) {
	t.set(d.Name, d)
	t.registrations += int64(len(d.Registration))
}

// at is the dataset of that name, if it is at that generation.
func (t *datasets) at(name string, generation uint64) (*Dataset, error) {
	d, ok := t.get(name)
	if !ok {
		return nil, fmt.Errorf("dataset %q %w", name, meta.ErrNotExist)
	}
	if d.Generation != generation {
		return nil, fmt.Errorf("dataset %q: %w: it is at generation %d, not %d; open it again",
			name, meta.ErrStale, d.Generation, generation)
	}
	return d, nil
}

// Datasets are all, by name.
func (m *Machine) Datasets() []Dataset {
	s, done := m.read()
	defer done()
	var all []Dataset
	for _, d := range sorted(&s.datasets().table) {
		all = append(all, *d)
	}
	return all
}

// Dataset is the one of that name.
func (m *Machine) Dataset(name string) (Dataset, bool) {
	s, done := m.read()
	defer done()
	d, ok := s.datasets().get(name)
	if !ok {
		return Dataset{}, false
	}
	return *d, true
}
