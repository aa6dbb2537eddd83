package wire_test

import (
	"context"
	"errors"
	"testing"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// lender is a store that has one record.
type lender struct {
	store
	record []byte
	err    chan error
}

func (l *lender) Gather(_ context.Context, _ [32]byte, _ []wire.Run, emit func([]byte) error) error {
	err := emit(l.record)
	l.err <- err
	return err
}

// Where there is no memory behind a batch, that is an error and not the end.
func TestNoMemoryForBatch(t *testing.T) {
	s := &store{Mean: 100_000}
	// Not on a net.Pipe: its writer waits for ever for a reader that fell.
	onEach(t, wiretest.Networks[1:], s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
		runs := []wire.Run{{First: 1, N: 5}}
		dst := holed(t, len(s.Want(runs)))
		for range 5 { // the node is not to blame
			err := get(t.Context(), c, 0, runs, [][]byte{dst})
			if !errors.Is(err, meta.ErrNoSpace) {
				t.Fatalf("%v, want %v", err, meta.ErrNoSpace)
			}
		}
		gather(t, c, s, runs, 10_000)
	})
}

// Where a file is cut short that a store lends, the request fails alone.
func TestFileCutShort(t *testing.T) {
	for _, w := range wiretest.Networks {
		for _, size := range []int{10_000, 3 << 20} {
			t.Run(w.Name, func(t *testing.T) {
				s := &lender{record: holed(t, size), err: make(chan error, 1)}
				l, dial := w.Listen(t)
				serve(t, l, s, wire.Limits{})
				c := newClient(t, dial, wire.Config{})
				err := get(t.Context(), c, 0, one, [][]byte{make([]byte, size)})
				if there := <-s.err; !errors.Is(there, meta.ErrStale) {
					t.Errorf("the store is told %v, want %v", there, meta.ErrStale)
				}
				if !errors.Is(err, meta.ErrUnavailable) {
					t.Errorf("%v, want %v", err, meta.ErrUnavailable)
				}
				s.record = make([]byte, size)
				if err := get(t.Context(), c, 0, one, [][]byte{make([]byte, size)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
