package meta

import (
	"context"
	"errors"
)

// kinds are the errors that callers branch on, under names that may cross a
// wire.
var kinds = []struct {
	name string
	err  error
}{
	{"not_exist", ErrNotExist},
	{"exist", ErrExist},
	{"invalid", ErrInvalid},
	{"stale", ErrStale},
	{"corrupt", ErrCorrupt},
	{"no_space", ErrNoSpace},
	{"overtaken", ErrOvertaken},
	{"set_aside", ErrSetAside},
	{"unavailable", ErrUnavailable}, // before busy: some errors are both
	{"busy", ErrBusy},
	{"denied", ErrDenied},
	{"quota", ErrQuota},
	{"unequal", ErrUnequal},
	{"lost", ErrLost},
	{"canceled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
	{"unsupported", errors.ErrUnsupported},
}

// A Told error is one of another process: its words, and for errors.Is the
// sentinel that it wrapped there.
type Told struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"`
	Gone    bool   `json:"gone,omitempty"` // of what is stale: it was ErrGone
}

// Tell makes an error fit to be sent.
func Tell(err error) *Told {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &Told{Plain(err), k.name, errors.Is(err, ErrGone)}
		}
	}
	return &Told{Message: Plain(err)}
}

func (t *Told) Error() string { return t.Message }

// Unwrap is the sentinel, or nil for an error of no kind or one unknown here.
func (t *Told) Unwrap() error {
	if t.Gone && t.Kind == "stale" {
		return ErrGone
	}
	for _, k := range kinds {
		if t.Kind == k.name {
			return k.err
		}
	}
	return nil
}
