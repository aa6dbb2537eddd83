package kept

import (
	"io/fs"
	"maps"
	"sync"

	"rankfs/meta/durable"
)

// A table has something of each dataset or view that has a name in it, in files too, by which
// a later daemon knows it. A change is in the files before it is in the table.
//
// Commands change it, and the catalog, as it follows the cluster. Changing is held for a whole
// change, the writing of files included, so one is made at a time. Lookups of views read it: mu
// guards which map is the table and is held for no more, so that no lookup waits for a disk.
type table[V any] struct {
	write    func(path string, text []byte, mode fs.FileMode) error // durable.WriteFile, but in tests
	changing sync.Mutex                                             // before mu

	mu struct {
		sync.Mutex
		of map[string]V // is never changed: another takes its place
	}
}

func newTable[V any](of map[string]V) *table[V] {
	t := &table[V]{write: durable.WriteFile}
	t.mu.of = of
	return t
}

// all is the table as it is now, not to be changed.
func (t *table[V]) all() map[string]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.of
}

func (t *table[V]) find(name string) (v V, ok bool) {
	v, ok = t.all()[name]
	return v, ok
}

// change has a function change what is to be the table, and write that to files. It stays as
// it is if that fails.
func (t *table[V]) change(to func(of map[string]V) error) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	of := maps.Clone(t.all())
	if err := to(of); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.of = of
	return nil
}
