package wire_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The calls of these tests: records of a store are pulled, anything is pushed.
const (
	callPull uint8 = 1
	callPush uint8 = 2
)

var dataset = wiretest.Dataset

var one = []wire.Run{{First: 1, N: 1}}

// A gatherer has the records that are pulled.
type gatherer interface {
	Gather(ctx context.Context, id [32]byte, runs []wire.Run, emit func([]byte) error) error
}

func calls(g gatherer) wire.Calls {
	return wire.Calls{callPull: func(ctx context.Context, q wire.Request, a wire.Answer) error {
		return g.Gather(ctx, q.ID, q.Runs, a.Emit)
	}}
}

// A store has records whose bytes say which they are.
type store = wiretest.Store

// serve runs a server of records until the end of the test or of stop.
func serve(t testing.TB, l net.Listener, g gatherer, limits wire.Limits) (server *wire.Server, stop func()) {
	t.Helper()
	return wiretest.Serve(t, l, calls(g), nil, limits)
}

func newClient(t testing.TB, dial wire.Dial, config wire.Config) *wire.Client {
	c := wire.New(dial, config)
	t.Cleanup(func() { wiretest.Close(t, c) })
	return c
}

// get pulls records into dst, waiting so long for its turn.
func get(ctx context.Context, c *wire.Client, wait time.Duration, runs []wire.Run, dst [][]byte) error {
	var n uint64
	for _, p := range dst {
		n += uint64(len(p))
	}
	q := wire.Request{Call: callPull, Wait: wait, Bytes: n, ID: dataset, Runs: runs}
	return c.Pull(ctx, "n", q, wire.NewScatter(dst))
}

// holed is a mapping of n bytes of which only the first page is there.
func holed(t *testing.T, n int) []byte {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return mem
}
