package pool

import (
	"context"
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

type threadKey struct{}

// By is a context for what a thread asks.
func By(ctx context.Context, thread int32) context.Context {
	return context.WithValue(ctx, threadKey{}, thread)
}

func thread(ctx context.Context) int32 {
	id, _ := ctx.Value(threadKey{}).(int32)
	return id
}

// waits are the waits on this node. They are as many as the kernel has requests under way. The
// lock guards each wait too.
type waits struct {
	mu  sync.Mutex
	all map[*Wait]uint64 // stages
}

// begin enters a wait, until done is called; sealed says that it has all maps.
func (w *waits) begin(ctx context.Context, stage uint64, p meta.Part) (sealed, done func()) {
	one := &Wait{Part: p, Thread: thread(ctx), Since: time.Now(), Sealing: true}
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

// of are the waits of a stage, the longest first.
func (w *waits) of(stage uint64) (all []Wait) {
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

func (w *waits) count() int {
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

func (r *Refusal) String() string {
	return fmt.Sprintf("%s at %s: %s", r.What, r.At.UTC().Format(time.DateTime+" UTC"), r.Why)
}

// refusals are the last of each stage, on this node. The lock guards the table, whose rows
// are replaced and not changed.
type refusals struct {
	mu  sync.Mutex
	all map[uint64]Refusal
}

// maxReason bounds what is kept of a reason.
const maxReason = 512

// inALine has each of several errors that are one by errors.Join end at a semicolon.
func inALine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (r *refusals) note(stage uint64, what string, err error) {
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

func (r *refusals) of(stage uint64) *Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, ok := r.all[stage]; ok {
		return &one
	}
	return nil
}

// keep forgets those of other stages.
func (r *refusals) keep(stages map[uint64]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.all, func(stage uint64, _ Refusal) bool { return !stages[stage] })
}

// Refused notes why something that a program asked of the stage was refused.
func (g *Stage) Refused(what string, err error) { g.job.pool.refusals.note(g.number, what, err) }
