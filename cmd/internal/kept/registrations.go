package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"rankfs/meta/durable"
)

// Registrations say of each dataset for which something is kept when it was registered,
// in a file too: another may come to have its name, also while this node is down.
//
// The lock is held for a whole change, the writing of the file included: changes are
// made by hand, one at a time.
type registrations struct {
	path string

	mu struct {
		sync.Mutex
		at map[string]time.Time // by the dataset's name
	}
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
	if json.Unmarshal(text, &r.mu.at) != nil || r.mu.at == nil {
		r.mu.at = make(map[string]time.Time)
	}
	return nil
}

func (r *registrations) find(dataset string) (at time.Time, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known = r.mu.at[dataset]
	return at, known
}

// set notes when the dataset was registered for which something is kept; zero: nothing is.
func (r *registrations) set(dataset string, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.at[dataset].Equal(at) {
		return nil
	}
	all := maps.Clone(r.mu.at)
	if all[dataset] = at; at.IsZero() {
		delete(all, dataset)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = durable.WriteFile(r.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what is kept for dataset %s: %w", dataset, err)
	}
	r.mu.at = all
	return nil
}
