package group

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"rankfs/meta"
)

// warnings are the failures of a leader's work, each of which it logs once, and not at every
// round in which it tries again. The lock guards what was said; nothing is logged under
// it.
type warnings struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		said map[string]string // what was logged last of each
	}
}

func newWarnings(log *slog.Logger) *warnings {
	w := &warnings{log: log}
	w.mu.said = make(map[string]string)
	return w
}

// told says what has gone wrong with a node, and reports whether all went well.
func (w *warnings) told(what, id string, err error) bool {
	switch {
	case err == nil:
		w.over(what + id)
		return true
	case errors.Is(err, context.Canceled) || errors.Is(err, meta.ErrBusy): // over soon
	case w.isNew(what+id, err.Error()):
		w.log.Warn(what+" yet", "node", id, "cause", err)
	}
	return false
}

// isNew notes what is wrong, and reports whether that is to be logged.
func (w *warnings) isNew(key, wrong string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.mu.said[key]
	w.mu.said[key] = wrong
	return before != wrong
}

// over notes that nothing is wrong any more.
func (w *warnings) over(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.said, key)
}
