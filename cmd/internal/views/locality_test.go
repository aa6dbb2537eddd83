package views

import (
	"context"
	"errors"
	"testing"

	"rankfs/cmd/internal/catalog/catalogtest"
)

// What a host holds is found by any of its names, and by none that is of two hosts.
func TestHoldersByName(t *testing.T) {
	h := Holders{"a.x": 1, "a.y": 2, "b.x": 4}
	for name, want := range map[string]int64{"a.x": 1, "a.y": 2, "a.z": 0, "b": 4, "c": 0} {
		if got := h.On(name); got != want {
			t.Errorf("%s holds %d bytes, want %d", name, got, want)
		}
	}
}

// A request that asks where a batch is goes over its records only as long as its caller
// waits for the answer.
func TestWhereABatchIsForACallerThatLeaves(t *testing.T) {
	vs := viewsOf(t, catalogtest.New(t, 1), "ranks=2,batch=8", 64, []string{"a"})
	v, err := vs.Open("d")
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	ask := map[string]func() error{
		"locality":   func() error { _, err := v.Locality().Append(ctx, nil, 1); return err },
		"attributes": func() error { _, err := v.Attributes(ctx, 0, 0); return err },
	}
	for name, ask := range ask {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	leave()
	for name, ask := range ask {
		if err := ask(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, for a caller that has left: %v", name, err)
		}
	}
}
