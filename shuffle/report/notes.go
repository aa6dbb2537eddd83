package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rankfs/meta"
)

// A Wait is an open of a part that has not returned.
type Wait struct {
	Part    meta.Part
	Thread  int32 // that waits; zero if it is not known
	Since   time.Time
	Sealing bool // it waits for the maps; else for the bytes
}

// Waits are the waits on this node. They are as many as the kernel has requests under way. The
// lock guards each wait too.
type Waits struct {
	mu  sync.Mutex
	all map[*Wait]uint64 // stages
}

// Begin enters a wait, until done is called; sealed says that it has all maps.
func (w *Waits) Begin(thread int32, stage uint64, p meta.Part) (sealed, done func()) {
	one := &Wait{Part: p, Thread: thread, Since: time.Now(), Sealing: true}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[*Wait]uint64)
	}
	w.all[one] = stage
	sealed = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		one.Sealing = false
	}
	return sealed, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	}
}

// Of are the waits of a stage, the longest first.
func (w *Waits) Of(stage uint64) (all []Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one, of := range w.all {
		if of == stage {
			all = append(all, *one)
		}
	}
	slices.SortFunc(all, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	return all
}

// Count is how many there are.
func (w *Waits) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// A Refusal is why something that a program asked of a stage was refused: it was told
// a number, and the log is root's.
type Refusal struct {
	What string
	Why  string
	At   time.Time
}

// String is a line of text.
func (r *Refusal) String() string {
	return fmt.Sprintf("%s at %s: %s", r.What, r.At.UTC().Format(time.DateTime+" UTC"), r.Why)
}

// Refusals are the last of each stage, on this node. The lock guards the table, whose rows
// are replaced and not changed.
type Refusals struct {
	mu  sync.Mutex
	all map[uint64]Refusal
}

// maxReason bounds what is kept of a reason.
const maxReason = 512

// inALine puts semicolons between errors that were joined.
func inALine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Note keeps why something was refused that was asked of a stage.
func (r *Refusals) Note(stage uint64, what string, err error) {
	why := inALine(err)
	if len(why) > maxReason {
		why = why[:maxReason] + "..."
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[uint64]Refusal)
	}
	r.all[stage] = Refusal{what, why, time.Now()}
}

// Of is the last of a stage, or nil.
func (r *Refusals) Of(stage uint64) *Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, ok := r.all[stage]; ok {
		return &one
	}
	return nil
}

// Keep forgets those of other stages.
func (r *Refusals) Keep(stages map[uint64]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.all, func(stage uint64, _ Refusal) bool { return !stages[stage] })
}
