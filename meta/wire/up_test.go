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

// A silent node is given up as soon as the cluster says that it is down, also by what waits for
// its turn. One that was known to be down, or of which nothing is known, has its time.
func TestNodeGoesDown(t *testing.T) {
	for _, test := range []struct {
		name string
		up   []string
		took time.Duration
	}{
		{"up", []string{"n", "other"}, time.Second},
		{"down before", []string{"other"}, 10 * time.Second},
		{"not known", nil, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := wire.New(silent, wire.Config{Conns: 1, Wait: time.Minute})
				defer wiretest.Close(t, c)
				c.Follow(test.up)
				time.AfterFunc(time.Second, func() { c.Follow([]string{"other"}) })
				begin := time.Now()
				waits := make(chan error, 1)
				go func() {
					waits <- c.WhileUp(t.Context(), "n", func(ctx context.Context) error {
						time.Sleep(time.Millisecond) // another one has the connection
						return get(ctx, c, time.Minute, one, [][]byte{make([]byte, 10)})
					})
				}()
				err := get(t.Context(), c, 0, one, [][]byte{make([]byte, 10)})
				if took := time.Since(begin); took != test.took || !errors.Is(err, meta.ErrUnavailable) {
					t.Errorf("given up after %v, want %v: %v", took, test.took, err)
				}
				if err := <-waits; !errors.Is(err, meta.ErrUnavailable) {
					t.Errorf("what waits for its turn: %v, want %v", err, meta.ErrUnavailable)
				}
				if took := time.Since(begin); test.took == time.Second && took != test.took {
					t.Errorf("what waits for its turn is given up after %v", took)
				}
			})
		})
	}
}

// A node that has gone down and is up again is given up when it goes down once more. Both times it
// is the node that has failed, and not its caller that has stopped.
func TestNodeGoesDownAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := wire.New(silent, wire.Config{})
		defer wiretest.Close(t, c)
		for range 2 {
			c.Follow([]string{"n"})
			time.AfterFunc(time.Second, func() { c.Follow(nil) })
			begin := time.Now()
			if err := get(t.Context(), c, 0, one, [][]byte{make([]byte, 10)}); !errors.Is(err, meta.ErrUnavailable) || time.Since(begin) != time.Second {
				t.Errorf("given up after %v: %v", time.Since(begin), err)
			}
		}
		if s := c.Stats(); s.Unavailable != 2 || s.Stopped != 0 {
			t.Errorf("%d requests failed as the node was not available and %d as they were stopped, want 2 and 0", s.Unavailable, s.Stopped)
		}
	})
}

// silent connects to a node that says nothing.
func silent(context.Context, string) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		for b := make([]byte, 100); ; {
			if _, err := there.Read(b); err != nil {
				return
			}
		}
	}()
	return here, nil
}
