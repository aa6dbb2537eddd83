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

// A request may have less patience than others: with the connection, and with each word.
func TestQuiet(t *testing.T) {
	const quiet = 4 * time.Second
	for _, tt := range []struct {
		name  string
		reply reply // nil: nothing takes the connection
		took  time.Duration
	}{
		{"no connection", nil, quiet},
		{"no word", func(net.Conn, []byte) {}, quiet},
		{"no second word", func(c net.Conn, q []byte) {
			time.Sleep(quiet - time.Second)
			c.Write(answer(q).frame(frameWait, 0, nil).b)
		}, 2*quiet - time.Second},
		{"no end", func(c net.Conn, q []byte) {
			s := good(q, 10)
			c.Write(s.b[:s.at[1]])
		}, quiet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial := func(ctx context.Context, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if tt.reply != nil {
					dial = fake(t, tt.reply)
				}
				c := wire.New(dial, wire.Config{})
				defer wiretest.Close(t, c)
				begin := time.Now()
				q := wire.Request{Quiet: quiet, Runs: []wire.Run{{First: 1, N: 2}}}
				err := c.Pull(t.Context(), "node", q, wire.NewScatter([][]byte{make([]byte, 10)}))
				if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took != tt.took {
					t.Errorf("%v after %v, want %v after %v", err, took, meta.ErrUnavailable, tt.took)
				}
			})
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

// A reader that takes nothing is dropped after half a minute.
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
