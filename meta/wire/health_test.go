package wire_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// Three failures in a row are a rest of 5 s, then a single request decides; pulls and
// pushes are the same for that.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		l, dial := wiretest.Pipe(t)
		_, stop := wiretest.Serve(t, l, calls(s), newKeeper().pushes(), wire.Limits{})
		defer stop()
		var dials, down atomic.Int64
		down.Store(1)
		c := wire.New(func(ctx context.Context, n string) (net.Conn, error) {
			if dials.Add(1); down.Load() > 0 {
				time.Sleep(time.Second)
				return nil, errors.New("refused")
			}
			return dial(ctx, n)
		}, wire.Config{})
		defer wiretest.Close(t, c)
		var tries atomic.Int64
		try := func() error {
			if tries.Add(1)%2 == 0 {
				return gatherOne(t.Context(), c, s, 0)
			}
			_, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, of(10))
			return err
		}
		asked := func(want int64) {
			t.Helper()
			before := dials.Load()
			if err := try(); !errors.Is(err, meta.ErrUnavailable) || dials.Load()-before != want {
				t.Fatalf("%v, asked %d times, want %d", err, dials.Load()-before, want)
			}
		}
		for range 3 {
			asked(1)
		}
		for _, rest := range []time.Duration{5, 10, 20, 40, 60, 60} {
			asked(0)
			if !c.BacksOff("n") || c.BacksOff("another") {
				t.Fatal("it is said not to rest, or another to")
			}
			time.Sleep(rest*time.Second - time.Millisecond)
			asked(0)
			time.Sleep(time.Millisecond)
			second := make(chan error)
			go func() { // beside the trial
				time.Sleep(time.Millisecond)
				before := dials.Load()
				err := try()
				if dials.Load() != before {
					err = errors.New("it was asked twice")
				}
				second <- err
			}()
			asked(1)
			if err := <-second; !errors.Is(err, meta.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		well := func() {
			t.Helper()
			down.Store(0)
			for range 3 {
				if err := try(); err != nil || c.BacksOff("n") {
					t.Fatal(err, "or it is said to rest")
				}
			}
		}
		time.Sleep(time.Minute)
		well()
		down.Store(1)
		for c.Keep(func(string) bool { return false }); !c.BacksOff("n"); {
			asked(1)
		}
		c.Keep(func(string) bool { return false }) // it is known to be back
		well()
	})
}

// What a node says of itself is no failure, nor is a caller that gives up.
func TestNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000, Before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		l, dial := wiretest.Pipe(t)
		_, stop := wiretest.Serve(t, l, calls(s), wire.Pushes{callPush: func(ctx context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			return nil, s.Before(ctx)
		}}, wire.Limits{})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		for range 10 {
			if err := c.Pull(t.Context(), "n", wire.Request{Call: callPull, Runs: one}, wire.NewScatter(nil)); !errors.Is(err, meta.ErrNotExist) {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := gatherOne(ctx, c, s, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Push(ctx, "n", wire.Request{Call: callPush}, of(10)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
	})
}
