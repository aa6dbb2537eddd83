package wire_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// A body comes as it was sent, and one that is too long, or has runs beside it, is not
// sent.
func TestBody(t *testing.T) {
	echo := func(_ context.Context, q wire.Request, a wire.Answer) error { return a.Emit(q.Body) }
	l, dial := wiretest.TCP(t)
	wiretest.Serve(t, l, wire.Calls{3: echo}, nil, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	for _, n := range []int{1, 15, 16, 5000, wire.MaxBody} {
		body, got := bytes.Repeat([]byte("abcdefg"), n/7+1)[:n], make([]byte, n)
		q := wire.Request{Call: 3, Bytes: uint64(n), Body: body}
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{got})); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes come back otherwise, or %v", n, err)
		}
		q.Call = 4
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{got})); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d bytes to a call that is not known: %v", n, err)
		}
	}
	for _, q := range []wire.Request{
		{Call: 3, Body: make([]byte, wire.MaxBody+1)},
		{Call: 3, Body: []byte("a"), Runs: []wire.Run{{First: 1, N: 1}}},
	} {
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter(nil)); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%d bytes beside %d runs: %v", len(q.Body), len(q.Runs), err)
		}
	}
	if n := c.Stats().Dials; n != 1 {
		t.Errorf("%d connections were made, want 1", n)
	}
}

// A body that was changed on the way is not answered.
func TestFlippedBody(t *testing.T) {
	l, dial := wiretest.Pipe(t)
	wiretest.Serve(t, l, wire.Calls{3: func(context.Context, wire.Request, wire.Answer) error {
		t.Error("the call is made")
		return nil
	}}, nil, wire.Limits{})
	c := newClient(t, func(ctx context.Context, node string) (net.Conn, error) {
		conn, err := dial(ctx, node)
		return &meddled{conn, new(way), &way{flip: true, at: 70 * 8}}, err // in what follows the header
	}, wire.Config{})
	q := wire.Request{Call: 3, Bytes: 1, Body: []byte("the flipped bit is in here")}
	if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{make([]byte, 1)})); err == nil {
		t.Error("it was answered")
	}
}
