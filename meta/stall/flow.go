package stall

import (
	"sync"
	"time"
)

// A Flow counts what was moved for one cause, by all fills together: Source, its
// ways, Peer and Decode. What is marked inside of another mark is time of its own
// alone, but for a way, which is the source's time too.
type Flow struct {
	Bytes int64
	Busy  time.Duration // while at least one fill was at it
	Held  time.Duration // of each fill that was at it, together
	Under int           // fills that are at it now
}

// Flows are the flows of all causes. A nil one counts nothing. Its methods may be
// called concurrently. The lock guards all of it; a step from one cause to the next is one
// change.
type Flows struct {
	now func() time.Time
	mu  struct {
		sync.Mutex
		all   [Causes]Flow
		since [Causes]time.Time // up to here Busy is counted
	}
}

// NewFlows starts at nothing. Now is time.Now, but in tests.
func NewFlows(now func() time.Time) *Flows { return &Flows{now: now} }

// pass notes that a part of a fill goes from one cause to another, and how many bytes
// it moved under the first.
func (f *Flows) pass(from, to Cause, bytes int64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if flowing(from) {
		f.mu.all[from].Bytes += bytes
	}
	if from.isWay() {
		f.change(from, -1, now)
	}
	if from, to := from.whole(), to.whole(); from != to {
		f.change(from, -1, now)
		f.change(to, +1, now)
	}
	if to.isWay() {
		f.change(to, +1, now)
	}
}

// change says that so many more fills are at a cause. mu is held.
func (f *Flows) change(c Cause, n int, now time.Time) {
	if flowing(c) {
		f.advance(c, now)
		f.mu.all[c].Under += n
	}
}

// flowing reports whether a cause is one that bytes come from, and that is
// entered by marks alone.
func flowing(c Cause) bool { return c == Source || c == Peer || c == Decode || c.isWay() }

// advance counts the time up to now. mu is held.
func (f *Flows) advance(c Cause, now time.Time) {
	if f.mu.all[c].Under > 0 {
		passed := now.Sub(f.mu.since[c])
		f.mu.all[c].Busy += passed
		f.mu.all[c].Held += passed * time.Duration(f.mu.all[c].Under)
	}
	f.mu.since[c] = now
}

// Read returns them, up to now; of none, nothing.
func (f *Flows) Read() (none [Causes]Flow) {
	if f == nil {
		return none
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	for c := range Causes {
		f.advance(c, now)
	}
	return f.mu.all
}
