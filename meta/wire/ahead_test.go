package wire_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/meta/wire"
	"rankfs/test/eventually"
	"rankfs/test/wiretest"
)

// Of a push whose length is known, or how long it is at most, more comes while what came before is worked on, so that the
// node that sends does not wait for each read; and no more than is on its way at most.
func TestPushGoesAhead(t *testing.T) {
	const piece, size, ahead = 64 << 10, 32 << 20, 4 << 20
	for i, w := range slices.Repeat(wiretest.Networks[1:], 2) { // a net.Pipe has no buffer
		bytes, most := uint64(size), uint64(0)
		if i >= len(wiretest.Networks[1:]) {
			bytes, most = 0, size+12345
		}
		t.Run(fmt.Sprint(w.Name, " bytes=", bytes), func(t *testing.T) {
			l, dial := w.Listen(t)
			var emitted atomic.Int64
			k, waits := newKeeper(), false
			k.room, k.most = piece, most
			k.each = func(ctx context.Context, had int) error {
				if had < 4*piece || waits {
					return nil
				}
				waits = true
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				err := eventually.Until(ctx, func() error {
					if n := emitted.Load(); n <= 12*piece {
						return fmt.Errorf("nothing more came than %d bytes", n)
					}
					return nil
				})
				if err != nil {
					return err
				}
				if n := emitted.Load(); n > int64(had)+ahead+piece {
					t.Errorf("%d bytes were sent, of which %d were read", n, had)
				}
				return nil
			}
			k.serve(t, l, wire.Limits{})
			c := newClient(t, dial, wire.Config{})
			whole := pattern(piece)
			_, err := c.Push(t.Context(), "n", wire.Request{Call: callPush, Bytes: bytes}, func(_ context.Context, emit func([]byte) error) error {
				for range size / piece {
					if err := emit(whole); err != nil {
						return err
					}
					emitted.Add(piece)
				}
				return nil
			})
			if end := <-k.ends; err != nil || end.err != nil || len(end.got) != size || !waits {
				t.Errorf("%v, %v, %d bytes", err, end.err, len(end.got))
			}
		})
	}
}
