package stall

import (
	"sync"
	"time"
)

// A Flow is what was moved for one cause, by all fills together: Source, Peer
// and Decode. What is marked inside of another mark is time of its own alone.
type Flow struct {
	Bytes int64
	Busy  time.Duration // while at least one fill was at it
	Held  time.Duration // of each fill that was at it, together
	Under int           // fills that are at it now
}

// Flows are those of all causes. A nil one counts nothing. Its methods may be
// called concurrently.
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

// turn says that somebody who was at one thing, and has moved so many bytes of
// it, is at another.
func (f *Flows) turn(from, to Cause, bytes int64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if flowing(from) {
		f.advance(from, now)
		f.mu.all[from].Under--
		f.mu.all[from].Bytes += bytes
	}
	if flowing(to) {
		f.advance(to, now)
		f.mu.all[to].Under++
	}
}

// flowing reports whether a cause is one that bytes come from, and that is
// entered by marks alone.
func flowing(c Cause) bool { return c == Source || c == Peer || c == Decode }

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
