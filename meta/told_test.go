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
		meta.ErrBusy, meta.ErrOvertaken, meta.ErrSetAside, meta.ErrUnavailable, meta.ErrDenied, context.Canceled, context.DeadlineExceeded,
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

func TestAToldErrorOfNoKind(t *testing.T) {
	if got := meta.Tell(errors.New("odd")); got.Kind != "" || got.Unwrap() != nil || got.Error() != "odd" {
		t.Errorf("%+v", got)
	}
	if got := (&meta.Told{Message: "new", Kind: "of a later version"}); got.Unwrap() != nil {
		t.Errorf("unknown kind unwraps to %v", got.Unwrap())
	}
}
