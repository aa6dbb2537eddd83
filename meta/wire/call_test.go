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

// A number is of a call or of a push.
func TestCallAndPush(t *testing.T) {
	calls := wire.Calls{1: func(context.Context, wire.Request, wire.Answer) error { return nil }}
	pushes := wire.Pushes{1: func(context.Context, wire.Request, *wire.Stream) ([]byte, error) { return nil, nil }}
	if _, err := wire.NewServer(calls, pushes, wire.Limits{}); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("%v, want %v", err, meta.ErrInvalid)
	}
}
