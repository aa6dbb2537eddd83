package peers_test

import (
	"bytes"
	"errors"
	"testing"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// What a node would have to fetch first it does not send to those who ask for what
// it keeps, and does to others; the connection goes on.
func TestKept(t *testing.T) {
	s := &store{Store: wiretest.Store{Mean: 100_000}}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		runs := []peers.Run{{First: 1, N: 3}}
		want := s.Want(runs)
		for _, test := range []struct {
			name        string
			lacks, kept bool
			err         error
		}{
			{"it keeps it", false, true, nil},
			{"it does not", true, true, meta.ErrBusy},
			{"it may fetch it", true, false, nil},
			{"it keeps it again", false, true, nil},
		} {
			s.lacks.Store(test.lacks)
			dst := make([]byte, len(want))
			err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs, Kept: test.kept}, [][]byte{dst})
			if !errors.Is(err, test.err) || err == nil && !bytes.Equal(dst, want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
		}
	})
}
