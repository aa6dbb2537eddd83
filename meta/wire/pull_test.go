package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// everywhere runs a test on each kind of connection.
func everywhere(t *testing.T, s *store, f func(t *testing.T, server *wire.Server, c *wire.Client)) {
	onEach(t, wiretest.Networks, s, f)
}

func onEach(t *testing.T, networks []wiretest.Network, s *store, f func(t *testing.T, server *wire.Server, c *wire.Client)) {
	for _, w := range networks {
		t.Run(w.Name, func(t *testing.T) {
			l, dial := w.Listen(t)
			server, _ := serve(t, l, s, wire.Limits{})
			f(t, server, newClient(t, dial, wire.Config{Wait: time.Minute}))
		})
	}
}

func gather(t testing.TB, c *wire.Client, s *store, runs []wire.Run, part int) {
	t.Helper()
	want := s.Want(runs)
	got, parts := wiretest.Pieces(len(want), part)
	if err := get(t.Context(), c, 0, runs, parts); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d runs, %d bytes: wrong bytes", len(runs), len(want))
	}
}

func TestPull(t *testing.T) {
	for _, mean := range []uint64{1, 100, 5_000, 40_000, 3_000_000} {
		s := &store{Mean: mean}
		t.Run(fmt.Sprint("mean ", mean), func(t *testing.T) {
			everywhere(t, s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
				gather(t, c, s, []wire.Run{{First: 3, N: 1}}, 1) // no bytes
				gather(t, c, s, []wire.Run{{First: 1, N: 5}, {First: 100, N: 1}, {First: 4, N: 2}}, 4096)
				gather(t, c, s, []wire.Run{{First: 9, N: 12}}, 1<<24)
				if n := c.Stats(); n.Dials != 1 || n.Requests != 3 {
					t.Errorf("%+v, want 3 requests on one connection", n)
				}
			})
		})
	}
}

func TestManyRuns(t *testing.T) {
	s := &store{Mean: 4}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
		runs := make([]wire.Run, 50_000)
		for i := range runs {
			runs[i] = wire.Run{First: uint64(i * 31 % 9973), N: 1 + uint64(i%3)}
		}
		gather(t, c, s, runs, 100)
	})
}

func TestRandomPulls(t *testing.T) {
	s := &store{Mean: 10_000}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
		run := rapid.Custom(func(t *rapid.T) wire.Run {
			return wire.Run{First: rapid.Uint64Range(0, 1000).Draw(t, "first"), N: rapid.Uint64Range(1, 8).Draw(t, "n")}
		})
		rapid.Check(t, func(r *rapid.T) {
			runs := rapid.SliceOfN(run, 1, 10).Draw(r, "runs")
			want := s.Want(runs)
			got, parts := wiretest.Pieces(len(want), rapid.IntRange(1_000, 100_000).Draw(r, "part"))
			if err := get(t.Context(), c, 0, runs, parts); err != nil {
				r.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				r.Fatal("wrong bytes")
			}
		})
	})
}

func TestConcurrentPulls(t *testing.T) {
	s := &store{Mean: 30_000}
	everywhere(t, s, func(t *testing.T, server *wire.Server, c *wire.Client) {
		var all sync.WaitGroup
		for i := range uint64(64) {
			all.Go(func() {
				runs := []wire.Run{{First: i * 10, N: 10}, {First: 1000 - i, N: 1}}
				want := s.Want(runs)
				got, parts := wiretest.Pieces(len(want), 9_000)
				if err := get(t.Context(), c, 0, runs, parts); err != nil {
					t.Error(err)
				} else if !bytes.Equal(got, want) {
					t.Errorf("gather %d: wrong bytes", i)
				}
			})
		}
		all.Wait()
		if n := c.Stats(); n.Dials > 4 || n.Requests != 64 {
			t.Errorf("%+v, want 64 requests on 4 connections at most", n)
		}
		if n := server.Stats(); n.Requests != 64 || n.Busy != 0 || n.Failed != 0 {
			t.Errorf("%+v, want 64 requests", n)
		}
	})
}

// What is wrong over there keeps its meaning, and the connection its use.
func TestErrorsOfTheStore(t *testing.T) {
	var failure error
	s := &store{Mean: 100_000}
	s.Before = func(context.Context) error { return failure }
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
		runs := []wire.Run{{First: 1, N: 3}}
		dst := [][]byte{make([]byte, len(s.Want(runs)))}
		for _, kind := range []error{
			meta.ErrNotExist, meta.ErrExist, meta.ErrInvalid, meta.ErrStale, meta.ErrCorrupt,
			meta.ErrNoSpace, meta.ErrBusy, meta.ErrOvertaken, meta.ErrUnavailable, meta.ErrDenied,
		} {
			failure = fmt.Errorf("chunk\n7: %w", kind)
			err := get(t.Context(), c, 0, runs, dst)
			if !errors.Is(err, kind) || !bytes.Contains([]byte(err.Error()), []byte("chunk?7")) {
				t.Errorf("%v, want %v", err, failure)
			}
		}
		for _, other := range []error{errors.New("something else"), context.Canceled, context.DeadlineExceeded} {
			failure = fmt.Errorf("chunk 7: %w", other)
			err := get(t.Context(), c, 0, runs, dst)
			if !errors.Is(err, meta.ErrUnavailable) || errors.Is(err, other) || !strings.Contains(err.Error(), failure.Error()) {
				t.Errorf("%v, want %v", err, meta.ErrUnavailable)
			}
		}
		failure = fmt.Errorf("%w: %s", meta.ErrStale, strings.Repeat("many words ", 200))
		if err := get(t.Context(), c, 0, runs, dst); !errors.Is(err, meta.ErrStale) {
			t.Errorf("%v, want %v", err, meta.ErrStale)
		}
		failure = nil
		gather(t, c, s, runs, 10_000)
		if n := c.Stats(); n.Dials != 1 {
			t.Errorf("%d connections, want 1", n.Dials)
		}
	})
}

func TestWrongLength(t *testing.T) {
	s := &store{Mean: 100_000}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *wire.Client) {
		runs := []wire.Run{{First: 1, N: 3}}
		for _, more := range []int{-1, 1} {
			dst := [][]byte{make([]byte, len(s.Want(runs))+more)}
			err := get(t.Context(), c, 0, runs, dst)
			if !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("%+d bytes: %v, want %v", more, err, meta.ErrInvalid)
			}
		}
	})
}

func TestWrongRuns(t *testing.T) {
	c := newClient(t, nil, wire.Config{})
	for _, test := range []struct {
		name string
		runs []wire.Run
	}{
		{"too many", make([]wire.Run, wire.MaxRuns+1)},
		{"empty", []wire.Run{{First: 1, N: 0}}},
		{"past the last number", []wire.Run{{First: 1 << 63, N: 1 << 63}}},
		{"more than there are numbers", []wire.Run{{First: 0, N: 1 << 63}, {First: 0, N: 1 << 63}}},
	} {
		err := get(t.Context(), c, 0, test.runs, nil)
		if !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: %v, want %v", test.name, err, meta.ErrInvalid)
		}
	}
}
