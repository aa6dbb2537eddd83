package meta_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"rankfs/meta"
)

func TestAToldErrorIsTheSameToItsReader(t *testing.T) {
	sentinels := []error{
		meta.ErrNotExist, meta.ErrExist, meta.ErrInvalid, meta.ErrStale, meta.ErrCorrupt, meta.ErrNoSpace,
		meta.ErrBusy, meta.ErrOvertaken, meta.ErrSetAside, meta.ErrUnavailable, meta.ErrDenied, meta.ErrQuota, meta.ErrUnequal, meta.ErrLost, context.Canceled, context.DeadlineExceeded,
	}
	for _, want := range sentinels {
		text, err := json.Marshal(meta.Tell(fmt.Errorf("open x: %w", want)))
		if err != nil {
			t.Fatal(err)
		}
		var got *meta.Told
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for _, other := range sentinels {
			if errors.Is(got, other) != (other == want) {
				t.Errorf("%v told as %s: errors.Is %v is %v", want, text, other, errors.Is(got, other))
			}
		}
		if got.Error() != "open x: "+want.Error() {
			t.Errorf("%q", got)
		}
	}
}

// What of several things does not exist is known beyond a wire too; a release that does not know
// of it knows that something does not.
func TestToldWhatDoesNotExist(t *testing.T) {
	all := []error{meta.ErrNoPin, meta.ErrNoPool, meta.ErrNoJob}
	for _, want := range all {
		told := meta.Tell(fmt.Errorf("a: %w", want))
		if told.Kind != "not_exist" || !errors.Is(told, meta.ErrNotExist) || told.Error() != "a: does not exist" {
			t.Errorf("told: %+v", told)
		}
		for _, other := range all {
			if errors.Is(told, other) != (other == want) {
				t.Errorf("told %+v: errors.Is %v is %v", told, other, other != want)
			}
		}
	}
	for _, what := range []string{"", "of a later version"} {
		told := &meta.Told{Kind: "not_exist", What: what}
		if !errors.Is(told, meta.ErrNotExist) || errors.Is(told, meta.ErrNoPin) {
			t.Errorf("told %+v: %v", told, told.Unwrap())
		}
	}
}

// That a source is gone is known beyond a wire too; a release that does not know of it knows
// that it has changed.
func TestToldThatASourceIsGone(t *testing.T) {
	told := meta.Tell(fmt.Errorf("a: %w", meta.ErrGone))
	if !errors.Is(told, meta.ErrGone) || !errors.Is(told, meta.ErrStale) || told.Kind != "stale" {
		t.Errorf("told: %+v", told)
	}
	if other := meta.Tell(fmt.Errorf("a: %w", meta.ErrStale)); errors.Is(other, meta.ErrGone) {
		t.Errorf("told: %+v", other)
	}
}

func TestAToldErrorOfNoKind(t *testing.T) {
	if got := meta.Tell(errors.New("odd")); got.Kind != "" || got.Unwrap() != nil || got.Error() != "odd" {
		t.Errorf("%+v", got)
	}
	if got := (&meta.Told{Message: "new", Kind: "of a later version"}); got.Unwrap() != nil {
		t.Errorf("unknown kind unwraps to %v", got.Unwrap())
	}
}

// An error in words of its own is of its kind, also beyond a wire, and of what its
// words wrap.
func TestWorded(t *testing.T) {
	cause := errors.New("the last of them was lost")
	err := meta.Worded(meta.ErrInvalid, "steps of %d records are too many: %w", 5, cause)
	if got, want := err.Error(), "steps of 5 records are too many: the last of them was lost"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, meta.ErrInvalid) || !errors.Is(err, cause) || !errors.Is(meta.Tell(err), meta.ErrInvalid) {
		t.Errorf("%v is not of its kind", err)
	}
}
