package peers_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/cache/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
)

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

// lender is a store that has one record.
type lender struct {
	store
	record []byte
	err    chan error
}

func (l *lender) Gather(_ context.Context, _ peers.ID, _ []peers.Run, emit func([]byte) error) error {
	err := emit(l.record)
	l.err <- err
	return err
}

// Where there is no memory behind a batch, that is an error and not the end.
func TestNoMemoryForBatch(t *testing.T) {
	s := &store{mean: 100_000}
	// Not on a net.Pipe: its writer waits for ever for a reader that fell.
	onEach(t, networks[1:], s, func(t *testing.T, _ *wire.Server, c *client) {
		runs := []peers.Run{{First: 1, N: 5}}
		dst := holed(t, len(s.want(runs)))
		for range 5 { // the node is not to blame
			err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, [][]byte{dst})
			if !errors.Is(err, meta.ErrNoSpace) {
				t.Fatalf("%v, want %v", err, meta.ErrNoSpace)
			}
		}
		gather(t, c, s, runs, 10_000)
	})
}

// Where a file is cut short that a store lends, the request fails alone.
func TestFileCutShort(t *testing.T) {
	for _, w := range networks {
		for _, size := range []int{10_000, 3 << 20} {
			t.Run(w.name, func(t *testing.T) {
				s := &lender{record: holed(t, size), err: make(chan error, 1)}
				l, dial := w.listen(t)
				serve(t, l, s, wire.Limits{})
				c := newClient(t, dial, wire.Config{})
				err := c.Gather(t.Context(), "n", peers.Want{Runs: one}, [][]byte{make([]byte, size)})
				if there := <-s.err; !errors.Is(there, meta.ErrStale) {
					t.Errorf("the store is told %v, want %v", there, meta.ErrStale)
				}
				if !errors.Is(err, meta.ErrUnavailable) {
					t.Errorf("%v, want %v", err, meta.ErrUnavailable)
				}
				s.record = make([]byte, size)
				if err := c.Gather(t.Context(), "n", peers.Want{Runs: one}, [][]byte{make([]byte, size)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
