package wire_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// Both sides count the same: in all, and for each node, as long as it is one.
func TestCountsOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		l, dial := wiretest.Pipe(t)
		server, stop := serve(t, l, s, wire.Limits{Name: func(net.Conn) string { return "asks" }})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		runs := []wire.Run{{First: 1, N: 5}, {First: 100, N: 2}}
		bytes := uint64(len(s.Want(runs)))
		gather(t, c, s, runs, 4096)
		gather(t, c, s, runs, 4096)
		for _, failure := range []error{meta.ErrBusy, meta.ErrStale} {
			s.Before = func(context.Context) error { return failure }
			if err := gatherOne(t.Context(), c, s, 0); !errors.Is(err, failure) {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Before = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		if err := gatherOne(ctx, c, s, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		synctest.Wait()

		all, of := c.Stats(), c.Nodes()
		if len(of) != 1 || of[0].Node != "n" {
			t.Fatalf("%+v, want one node", of)
		}
		n := of[0]
		if n.Requests != 5 || n.Items != 14 || n.Busy != 1 || n.Failed != 1 || n.BytesIn < 2*bytes || n.BytesIn > 2*bytes+1000 {
			t.Errorf("of a node: %+v", n)
		}
		if all.Requests != 5 || all.Items != 14 || all.Busy != 1 || all.Other != 1 || all.Stopped != 1 || all.BytesIn != n.BytesIn {
			t.Errorf("of all: %+v", all)
		}
		given, to := server.Stats(), server.Visitors()
		if len(to) != 1 || to[0].Node != "asks" {
			t.Fatalf("%+v, want one node", to)
		}
		v := to[0]
		if v.Requests != 5 || v.Items != 14 || v.Busy != 1 || v.Failed != 2 || v.BytesOut != n.BytesIn {
			t.Errorf("of a node that asked: %+v, which has %d bytes", v, n.BytesIn)
		}
		if given.Requests != 5 || given.Items != 14 || given.Busy != 1 || given.Failed != 2 || given.BytesOut != v.BytesOut {
			t.Errorf("of all that asked: %+v", given)
		}
		server.Keep(func(node string) bool { return node != "asks" })
		if to := server.Visitors(); len(to) != 0 {
			t.Errorf("%+v is kept", to)
		}
	})
}
