package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// An answer, or what is pushed, that may have so many bytes at most has any number up to that,
// and no more.
func TestAtMost(t *testing.T) {
	const most = 300_000
	whole := pattern(2 * most)
	for _, w := range wiretest.Networks {
		t.Run(w.Name, func(t *testing.T) {
			l, dial := w.Listen(t)
			var taken []byte
			server, _ := wiretest.Serve(t, l, wire.Calls{callPull: func(_ context.Context, q wire.Request, a wire.Answer) error {
				a.AtMost(most)
				return a.Emit(whole[:binary.LittleEndian.Uint64(q.ID[:])])
			}}, wire.Pushes{callPush: func(_ context.Context, _ wire.Request, in *wire.Stream) (result []byte, err error) {
				in.AtMost(most)
				if err = in.Grant(2 * most); err == nil {
					taken, err = io.ReadAll(in)
				}
				return nil, err
			}}, wire.Limits{})
			c := newClient(t, dial, wire.Config{})
			for _, n := range []int{0, 1, most - 1, most, most + 1} {
				want := [2]error{}
				if n > most {
					want = [2]error{meta.ErrInvalid, meta.ErrCorrupt}
				}
				q, got := wire.Request{Call: callPull, Bytes: 7}, make([]byte, n)
				binary.LittleEndian.PutUint64(q.ID[:], uint64(n))
				if err := c.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{got})); !errors.Is(err, want[0]) || err == nil && !bytes.Equal(got, whole[:n]) {
					t.Errorf("an answer of %d bytes: %v", n, err)
				}
				_, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, wire.From(bytes.NewReader(whole[:n])))
				if !errors.Is(err, want[1]) || err == nil && !bytes.Equal(taken, whole[:n]) {
					t.Errorf("%d bytes that are pushed: %v", n, err)
				}
			}
			if n := server.Stats(); n.Requests != 10 || n.Failed != 2 {
				t.Errorf("%+v", n)
			}
		})
	}
}
