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

// A server that ends in mid-stream is an error, and the next one is found.
func TestServerDies(t *testing.T) {
	for _, w := range wiretest.Networks[1:] {
		t.Run(w.Name, func(t *testing.T) {
			s := &store{Mean: 50_000}
			l, dial := w.Listen(t)
			reached := make(chan struct{}, 1000)
			s.Before = func(ctx context.Context) error {
				reached <- struct{}{}
				if len(reached) > 20 {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			_, stop := serve(t, l, s, wire.Limits{})
			now := dial
			c := newClient(t, func(ctx context.Context, n string) (net.Conn, error) { return now(ctx, n) }, wire.Config{})
			runs := []wire.Run{{First: 0, N: 200}}
			failed := make(chan error, 1)
			go func() {
				failed <- get(t.Context(), c, 0, runs, [][]byte{make([]byte, len(s.Want(runs)))})
			}()
			for len(reached) <= 20 {
				<-time.After(time.Millisecond)
			}
			stop()
			if err := <-failed; !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("%v, want %v", err, meta.ErrUnavailable)
			}
			s.Before = nil
			l, now = w.Listen(t)
			serve(t, l, s, wire.Limits{})
			gather(t, c, s, runs, 10_000)
		})
	}
}

// A connection that ended while it was idle is replaced without a word.
func TestIdleConnectionEnds(t *testing.T) {
	for _, w := range wiretest.Networks {
		t.Run(w.Name, func(t *testing.T) {
			s := &store{Mean: 50_000}
			l, dial := w.Listen(t)
			_, stop := serve(t, l, s, wire.Limits{})
			now := dial
			c := newClient(t, func(ctx context.Context, n string) (net.Conn, error) { return now(ctx, n) }, wire.Config{})
			runs := []wire.Run{{First: 0, N: 20}}
			gather(t, c, s, runs, 10_000)
			stop()
			l, now = w.Listen(t)
			serve(t, l, s, wire.Limits{})
			gather(t, c, s, runs, 10_000)
			if n := c.Stats(); n.Dials != 2 || n.Unavailable != 0 || n.Conns != 1 {
				t.Errorf("%+v, want two connections made, and one left", n)
			}
		})
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 100}
		l, dial := wiretest.Pipe(t)
		server, stop := serve(t, l, s, wire.Limits{})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		gather(t, c, s, []wire.Run{{First: 0, N: 20}}, 100)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := c.Stats(); n.Conns != 1 {
			t.Fatalf("%d connections after 29s, want 1", n.Conns)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, m := c.Stats(), server.Stats(); n.Conns != 0 || m.Conns != 0 {
			t.Fatalf("%d connections after 31s, %d of the server, want none", n.Conns, m.Conns)
		}
	})
}
