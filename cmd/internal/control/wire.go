package control

import (
	"context"
	"encoding/json"
	"errors"

	"rankfs/meta"
)

// An event is one line of an answer: any number of progress, then one result
// or one error. An answer that ends without either was cut short.
type event struct {
	Progress *Progress       `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *remoteError    `json:"error,omitempty"`
}

// A named is the request of every operation on one dataset.
type named struct {
	Name string `json:"name"`
}

// kinds carries the errors that callers branch on across the socket.
var kinds = []struct {
	name string
	err  error
}{
	{"not_exist", meta.ErrNotExist},
	{"exist", meta.ErrExist},
	{"invalid", meta.ErrInvalid},
	{"stale", meta.ErrStale},
	{"corrupt", meta.ErrCorrupt},
	{"no_space", meta.ErrNoSpace},
	{"busy", meta.ErrBusy},
	{"canceled", context.Canceled},
}

// A remoteError is an error of the daemon as its client sees it: the same
// words, and for errors.Is the same sentinel.
type remoteError struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"`
}

func newRemoteError(err error) *remoteError {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &remoteError{err.Error(), k.name}
		}
	}
	return &remoteError{Message: err.Error()}
}

func (e *remoteError) Error() string { return e.Message }

func (e *remoteError) Unwrap() error {
	for _, k := range kinds {
		if e.Kind == k.name {
			return k.err
		}
	}
	return nil
}
