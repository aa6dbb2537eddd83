package peers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rankfs/cache/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
)

// everywhere runs a test on each kind of connection.
func everywhere(t *testing.T, s *store, f func(t *testing.T, server *wire.Server, c *client)) {
	onEach(t, networks, s, f)
}

func onEach(t *testing.T, networks []network, s *store, f func(t *testing.T, server *wire.Server, c *client)) {
	for _, w := range networks {
		t.Run(w.name, func(t *testing.T) {
			l, dial := w.listen(t)
			server, _ := serve(t, l, s, wire.Limits{})
			f(t, server, newClient(t, dial, wire.Config{}))
		})
	}
}

func gather(t testing.TB, c *client, s *store, runs []peers.Run, part int) {
	t.Helper()
	want := s.want(runs)
	got, parts := pieces(len(want), part)
	if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, parts); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d runs, %d bytes: wrong bytes", len(runs), len(want))
	}
}

func TestGather(t *testing.T) {
	for _, mean := range []uint64{1, 100, 5_000, 40_000, 3_000_000} {
		s := &store{mean: mean}
		t.Run(fmt.Sprint("mean ", mean), func(t *testing.T) {
			everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
				gather(t, c, s, []peers.Run{{First: 3, N: 1}}, 1) // no bytes
				gather(t, c, s, []peers.Run{{First: 1, N: 5}, {First: 100, N: 1}, {First: 4, N: 2}}, 4096)
				gather(t, c, s, []peers.Run{{First: 9, N: 12}}, 1<<24)
				if n := c.Stats(); n.Dials != 1 || n.Requests != 3 {
					t.Errorf("%+v, want 3 requests on one connection", n)
				}
			})
		})
	}
}

func TestGatherManyRuns(t *testing.T) {
	s := &store{mean: 4}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		runs := make([]peers.Run, 50_000)
		for i := range runs {
			runs[i] = peers.Run{First: uint64(i * 31 % 9973), N: 1 + uint64(i%3)}
		}
		gather(t, c, s, runs, 100)
	})
}

func TestRandomGathers(t *testing.T) {
	s := &store{mean: 10_000}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		run := rapid.Custom(func(t *rapid.T) peers.Run {
			return peers.Run{First: rapid.Uint64Range(0, 1000).Draw(t, "first"), N: rapid.Uint64Range(1, 8).Draw(t, "n")}
		})
		rapid.Check(t, func(r *rapid.T) {
			runs := rapid.SliceOfN(run, 1, 10).Draw(r, "runs")
			want := s.want(runs)
			got, parts := pieces(len(want), rapid.IntRange(1_000, 100_000).Draw(r, "part"))
			if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, parts); err != nil {
				r.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				r.Fatal("wrong bytes")
			}
		})
	})
}

func TestConcurrentGathers(t *testing.T) {
	s := &store{mean: 30_000}
	everywhere(t, s, func(t *testing.T, server *wire.Server, c *client) {
		var all sync.WaitGroup
		for i := range uint64(64) {
			all.Go(func() {
				runs := []peers.Run{{First: i * 10, N: 10}, {First: 1000 - i, N: 1}}
				want := s.want(runs)
				got, parts := pieces(len(want), 9_000)
				if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, parts); err != nil {
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
	s := &store{mean: 100_000}
	s.before = func(context.Context) error { return failure }
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		runs := []peers.Run{{First: 1, N: 3}}
		dst := [][]byte{make([]byte, len(s.want(runs)))}
		for _, kind := range []error{
			meta.ErrNotExist, meta.ErrExist, meta.ErrInvalid, meta.ErrStale, meta.ErrCorrupt,
			meta.ErrNoSpace, meta.ErrBusy, meta.ErrOvertaken, meta.ErrUnavailable, meta.ErrDenied,
		} {
			failure = fmt.Errorf("chunk\n7: %w", kind)
			err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, dst)
			if !errors.Is(err, kind) || !bytes.Contains([]byte(err.Error()), []byte("chunk?7")) {
				t.Errorf("%v, want %v", err, failure)
			}
		}
		for _, other := range []error{errors.New("something else"), context.Canceled, context.DeadlineExceeded} {
			failure = fmt.Errorf("chunk 7: %w", other)
			err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, dst)
			if !errors.Is(err, meta.ErrUnavailable) || errors.Is(err, other) || !strings.Contains(err.Error(), failure.Error()) {
				t.Errorf("%v, want %v", err, meta.ErrUnavailable)
			}
		}
		failure = fmt.Errorf("%w: %s", meta.ErrStale, strings.Repeat("many words ", 200))
		if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, dst); !errors.Is(err, meta.ErrStale) {
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
	s := &store{mean: 100_000}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		runs := []peers.Run{{First: 1, N: 3}}
		for _, more := range []int{-1, 1} {
			dst := [][]byte{make([]byte, len(s.want(runs))+more)}
			err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, dst)
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
		runs []peers.Run
	}{
		{"none", nil},
		{"too many", make([]peers.Run, wire.MaxRuns+1)},
		{"empty", []peers.Run{{First: 1, N: 0}}},
		{"past the last number", []peers.Run{{First: 1 << 63, N: 1 << 63}}},
		{"more than there are numbers", []peers.Run{{First: 0, N: 1 << 63}, {First: 0, N: 1 << 63}}},
	} {
		err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: test.runs}, nil)
		if !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s: %v, want %v", test.name, err, meta.ErrInvalid)
		}
	}
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	s := &store{file: filepath.Join(dir, "there")}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		for _, size := range []int{0, 1, 64 << 10, 3<<20 + 17} {
			text, _ := pieces(size, 1000)
			for i := range text {
				text[i] = byte(i * i >> 3)
			}
			if err := os.WriteFile(s.file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "index")
			if err := c.Fetch(t.Context(), "n", sha256.Sum256(text), path); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: wrong bytes (%v)", size, err)
			}
		}
	})
}

// A file that is not what was asked for, or not there, leaves nothing behind.
func TestFetchFails(t *testing.T) {
	s := &store{file: filepath.Join(t.TempDir(), "there")}
	for _, test := range []struct {
		name string
		text []byte
		max  int64
		want error
	}{
		{"not there", nil, 1 << 20, meta.ErrNotExist},
		{"another", make([]byte, 100_000), 1 << 20, meta.ErrCorrupt},
		{"too long", make([]byte, 100_000), 99_999, meta.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.text != nil {
				if err := os.WriteFile(s.file, test.text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l, dial := listenPipe(t)
			serve(t, l, s, wire.Limits{})
			w := wire.New(dial, wire.Config{})
			defer w.Close()
			c := peers.New(w, peers.Config{MaxFile: test.max})
			dir := t.TempDir()
			err := c.Fetch(t.Context(), "n", dataset, filepath.Join(dir, "index"))
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}
