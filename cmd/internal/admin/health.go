package admin

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"rankfs/cmd/internal/control"
)

// A fault is something that is not as it should be: of what kind, of which of several
// things, and in words, which may change while it goes on.
type fault struct{ kind, of, what string }

// maxWarned bounds the things of one kind that status warns of.
const maxWarned = 8

// The health of a daemon is looked at every so often, and that it was long ago is a fault
// itself.
const (
	lookTime = 2 * time.Second
	lateTime = 10 * time.Second
)

// A health has the faults of the last look, each with when it began. The lock guards the
// last look, whose faults are listed anew each time and never changed.
type health struct {
	now func() time.Time
	mu  struct {
		sync.Mutex
		at     time.Time // of the last look
		since  map[[2]string]time.Time
		faults []control.Fault
	}
}

func newHealth(now func() time.Time) *health {
	h := &health{now: now}
	h.mu.at = now()
	return h
}

// note takes what is wrong now, and says since when it is.
func (h *health) note(all []fault) []control.Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.at = h.now()
	before := h.mu.since
	h.mu.since, h.mu.faults = make(map[[2]string]time.Time), nil
	for _, w := range all {
		key := [2]string{w.kind, w.of}
		since, known := before[key]
		if !known {
			since = h.mu.at
		}
		h.mu.since[key] = since
		h.mu.faults = append(h.mu.faults, control.Fault{Since: since.UTC().Truncate(time.Second), Kind: w.kind, What: w.what})
	}
	return h.mu.faults
}

// text is a line for each fault, or one that says ok. It waits for nothing: not even
// for a daemon that does not come to look at itself.
func (h *health) text() []byte {
	h.mu.Lock()
	at, faults := h.mu.at, h.mu.faults
	h.mu.Unlock()
	var b strings.Builder
	if late := h.now().Sub(at); late > lateTime {
		fmt.Fprintf(&b, "%s daemon it has not looked at itself since then; see its log\n", at.UTC().Format(time.RFC3339))
	}
	for _, f := range faults {
		fmt.Fprintf(&b, "%s %s %s\n", f.Since.Format(time.RFC3339), f.Kind, strings.Join(strings.Fields(f.What), " "))
	}
	if b.Len() == 0 {
		return []byte("ok\n")
	}
	return []byte(b.String())
}
