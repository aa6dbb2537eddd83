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

// Wherever an answer ends, or hangs, it is an error, and after how long is
// known.
func TestCutAnswers(t *testing.T) {
	const n = 30
	length := len(good(make([]byte, 64), n).b)
	for at := range length {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := ask(t, func(c net.Conn, q []byte) {
				c.Write(good(q, n).b[:at])
				c.Close()
			}, n)
			if !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("cut at %d: %v, want %v", at, err, meta.ErrUnavailable)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, _, err := ask(t, func(c net.Conn, q []byte) { c.Write(good(q, n).b[:at]) }, n)
			if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took != 10*time.Second {
				t.Errorf("hung at %d: %v after %v, want %v after 10s", at, err, took, meta.ErrUnavailable)
			}
		})
	}
}

// A node that says that it is at work is believed for long, but not for ever.
func TestNoDataForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, _, err := ask(t, func(c net.Conn, q []byte) {
			s := answer(q)
			for range 100 {
				time.Sleep(3 * time.Second)
				if _, err := c.Write(s.frame(frameWait, 0, nil).b[s.at[len(s.at)-1]:]); err != nil {
					return
				}
			}
		}, 10)
		if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took < 30*time.Second || took > 35*time.Second {
			t.Errorf("%v after %v, want %v after 30s", err, took, meta.ErrUnavailable)
		}
	})
}

// Bytes one by one are not worth waiting for.
func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		begin := time.Now()
		_, _, err := ask(t, func(c net.Conn, q []byte) {
			for _, b := range good(q, n).b {
				time.Sleep(time.Second)
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		}, n)
		if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took > time.Minute {
			t.Errorf("%v after %v, want %v within a minute", err, took, meta.ErrUnavailable)
		}
	})
}

// A server whose store is slow says so, and is waited for.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		s.Before = func(context.Context) error { time.Sleep(14 * time.Second); return nil }
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, s, wire.Limits{})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		gather(t, c, s, []wire.Run{{First: 1, N: 5}}, 1000)
	})
}

// A store that hangs is given up on both sides.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		left := make(chan error, 1)
		s.Before = func(ctx context.Context) error {
			<-ctx.Done()
			left <- context.Cause(ctx)
			return ctx.Err()
		}
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, s, wire.Limits{Store: 20 * time.Second})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		err := get(t.Context(), c, 0, []wire.Run{{First: 1, N: 1}}, [][]byte{make([]byte, s.Length(1))})
		if !errors.Is(err, meta.ErrUnavailable) || c.Stats().Dials != 1 {
			t.Errorf("%v, want %v", err, meta.ErrUnavailable)
		}
		if err := <-left; !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("the store was stopped because of %v", err)
		}
	})
}

// Who takes nothing is dropped after half a minute.
func TestReaderTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1 << 20}
		l, dial := wiretest.Pipe(t)
		server, stop := serve(t, l, s, wire.Limits{})
		defer stop()
		c, err := dial(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		c.Write(recorded(t, s))
		for server.Stats().Conns > 0 {
			time.Sleep(time.Second)
		}
		if n := server.Stats(); time.Since(begin) > 31*time.Second || n.Slow != 1 {
			t.Errorf("dropped after %v, %+v; want 30s", time.Since(begin), n)
		}
	})
}
