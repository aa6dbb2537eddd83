package peers_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var dataset = wiretest.Dataset

// A store is a node's, with records and perhaps a file.
type store struct {
	wiretest.Store
	lacks atomic.Bool // what it would have to fetch
	file  string      // that File opens
}

func (s *store) Kept(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	if s.lacks.Load() {
		return meta.ErrBusy
	}
	return s.Gather(ctx, dataset, runs, emit)
}

func (s *store) File(ctx context.Context, hash peers.ID) (*os.File, int64, error) {
	f, err := os.Open(s.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, meta.ErrNotExist
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// serve runs a server until the end of the test or of stop.
func serve(t testing.TB, l net.Listener, s peers.Store, limits wire.Limits) (server *wire.Server, stop func()) {
	t.Helper()
	return wiretest.Serve(t, l, peers.Calls(s), nil, limits)
}

// A client asks for records, over a transport of its own.
type client struct {
	*peers.Client
	wire *wire.Client
}

func connect(dial wire.Dial, c wire.Config) *client {
	w := wire.New(dial, c)
	return &client{peers.New(w, peers.Config{}), w}
}

func (c *client) Stats() wire.ClientStats { return c.wire.Stats() }
func (c *client) Nodes() []wire.NodeStats { return c.wire.Nodes() }

func newClient(t testing.TB, dial wire.Dial, c wire.Config) *client {
	t.Helper()
	k := connect(dial, c)
	t.Cleanup(func() { wiretest.Close(t, k.wire) })
	return k
}
