package wire_test

import (
	"context"
	"errors"
	"testing"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// A call that a node does not know is refused by an answer that tells so, and the
// connection goes on; what was to be pushed is not touched.
func TestUnknownCall(t *testing.T) {
	echo := func(_ context.Context, q wire.Request, a wire.Answer) error { return a.Emit(q.ID[:q.Bytes]) }
	l, dial := wiretest.TCP(t)
	wiretest.Serve(t, l, wire.Calls{1: echo}, nil, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	for _, runs := range [][]wire.Run{nil, {{First: 1, N: 2}, {First: 7, N: 1}}} {
		q := wire.Request{Call: 77, Bytes: 4, ID: [32]byte{1, 2, 3, 4}, Runs: runs}
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{make([]byte, 4)})); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d runs: %v, want %v", len(runs), err, errors.ErrUnsupported)
		}
		if _, err := c.Push(t.Context(), "n", q, func(context.Context, func([]byte) error) error {
			t.Error("data is asked for")
			return nil
		}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d runs, pushed: %v, want %v", len(runs), err, errors.ErrUnsupported)
		}
		q.Call = 1
		got := make([]byte, 4)
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{got})); err != nil || string(got) != "\x01\x02\x03\x04" {
			t.Errorf("%d runs: %v, %v", len(runs), got, err)
		}
	}
	if n := c.Stats().Dials; n != 1 {
		t.Errorf("%d connections were made, want 1", n)
	}
}

// A number is of one call or of one push, of whichever package.
func TestNumbers(t *testing.T) {
	call := func(context.Context, wire.Request, wire.Answer) error { return nil }
	push := func(context.Context, wire.Request, *wire.Stream) ([]byte, error) { return nil, nil }
	for _, test := range []struct {
		name   string
		calls  []wire.Calls
		pushes wire.Pushes
		want   error
	}{
		{"each its own", []wire.Calls{{1: call, 2: call}, nil, {3: call}}, wire.Pushes{4: push}, nil},
		{"of two calls", []wire.Calls{{1: call, 2: call}, {2: call}}, nil, meta.ErrInvalid},
		{"of a call and a push", []wire.Calls{{1: call}, {2: call}}, wire.Pushes{2: push}, meta.ErrInvalid},
	} {
		if _, err := wire.NewServer(wire.Limits{}, test.pushes, test.calls...); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}
