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
	what string // of a kind of its own among those of the name
}{
	{"not_exist", ErrNoPin, "pin"},
	{"not_exist", ErrNoPool, "pool"},
	{"not_exist", ErrNoJob, "job"},
	{name: "not_exist", err: ErrNotExist},
	{name: "exist", err: ErrExist},
	{name: "invalid", err: ErrInvalid},
	{name: "stale", err: ErrStale},
	{name: "corrupt", err: ErrCorrupt},
	{name: "no_space", err: ErrNoSpace},
	{name: "overtaken", err: ErrOvertaken},
	{name: "set_aside", err: ErrSetAside},
	{name: "unavailable", err: ErrUnavailable}, // before busy: some errors are both
	{name: "busy", err: ErrBusy},
	{name: "denied", err: ErrDenied},
	{name: "quota", err: ErrQuota},
	{name: "unequal", err: ErrUnequal},
	{name: "lost", err: ErrLost},
	{name: "canceled", err: context.Canceled},
	{name: "deadline", err: context.DeadlineExceeded},
	{name: "unsupported", err: errors.ErrUnsupported},
}

// A Told error is one of another process: its words, and for errors.Is the
// sentinel that it wrapped there.
type Told struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"`
	Gone    bool   `json:"gone,omitempty"` // of what is stale: it was ErrGone
	What    string `json:"what,omitempty"` // of what does not exist, where a caller asks
}

// Tell makes an error fit to be sent.
func Tell(err error) *Told {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &Told{Plain(err), k.name, errors.Is(err, ErrGone), k.what}
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
		if t.Kind == k.name && (t.What == k.what || k.what == "") {
			return k.err
		}
	}
	return nil
}
