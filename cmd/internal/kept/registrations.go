package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Registrations say of each dataset for which something is kept when it was registered,
// in a file too: another may come to have its name, also while this node is down.
type registrations struct {
	path              string
	*table[time.Time] // by the dataset's name
}

const maxRegistrations = 1 << 20 // bytes of the file: more than there are pins and traces

// open reads what an earlier daemon wrote. Of a file that is damaged nothing is known, as
// of one that is not there.
func (r *registrations) open(dir string) error {
	r.path = filepath.Join(dir, "kept")
	text, err := readBounded(r.path, maxRegistrations)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("for which datasets something is kept: %w", err)
	}
	var at map[string]time.Time
	if json.Unmarshal(text, &at) != nil || at == nil {
		at = make(map[string]time.Time)
	}
	r.table = newTable(at)
	return nil
}

// set notes when the dataset was registered for which something is kept; zero: nothing is.
func (r *registrations) set(dataset string, at time.Time) error {
	return r.change(func(all map[string]time.Time) error {
		if all[dataset].Equal(at) {
			return nil
		}
		if all[dataset] = at; at.IsZero() {
			delete(all, dataset)
		}
		text, err := json.Marshal(all)
		if err == nil {
			err = r.write(r.path, text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("note what is kept for dataset %s: %w", dataset, err)
		}
		return nil
	})
}
