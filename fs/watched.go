package fs

import (
	"context"
	"sync"
)

// A watched is the poll state of an open queue file: the kernel's poll handle and
// the watch that will notify it. There is at most one watch, and it ends with the
// file. The lock guards all of it; the kernel is notified without it.
type watched struct {
	mu struct {
		sync.Mutex
		handle uint64 // the kernel's
		known  bool   // is the handle
		closed bool
		left   bool               // of a line, so that a read returns at once
		waits  bool               // a read does
		stop   context.CancelFunc // of the watch, if there is one
	}
}

func (w *watched) asked(handle uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.handle, w.mu.known = handle, true
}

// waits notes whether a read is about to take a line.
func (w *watched) waits(now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.waits = now
}

// leaves notes whether there is more of the line.
func (w *watched) leaves(more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.left = more
}

// seen ends a watch that saw its queue ready: the POLL that the kernel sends upon
// the notice may begin another.
func (w *watched) seen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.stop = nil
}

func (w *watched) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
	if w.mu.stop != nil {
		w.mu.stop()
	}
}
