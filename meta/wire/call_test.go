package wire_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"

	"rankfs/meta/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A call that a node does not know is refused by an answer that tells so, and the
// connection goes on.
func TestUnknownCall(t *testing.T) {
	echo := func(_ context.Context, q wire.Request, a wire.Answer) error { return a.Emit(q.ID[:q.Bytes]) }
	server, err := wire.NewServer(wire.Calls{1: echo}, wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	c := wire.New(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}, wire.Config{})
	defer c.Close()
	for _, runs := range [][]wire.Run{nil, {{First: 1, N: 2}, {First: 7, N: 1}}} {
		q := wire.Request{Call: 77, Bytes: 4, ID: [32]byte{1, 2, 3, 4}, Runs: runs}
		if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{make([]byte, 4)})); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d runs: %v, want %v", len(runs), err, errors.ErrUnsupported)
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
