package peers_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// everywhere runs a test on each kind of connection.
func everywhere(t *testing.T, s *store, f func(t *testing.T, server *wire.Server, c *client)) {
	for _, w := range wiretest.Networks {
		t.Run(w.Name, func(t *testing.T) {
			l, dial := w.Listen(t)
			server, _ := serve(t, l, s, wire.Limits{})
			f(t, server, newClient(t, dial, wire.Config{}))
		})
	}
}

func gather(t testing.TB, c *client, s *store, runs []peers.Run, part int) {
	t.Helper()
	want := s.Want(runs)
	got, parts := wiretest.Pieces(len(want), part)
	if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, parts); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d runs, %d bytes: wrong bytes", len(runs), len(want))
	}
}

func TestGather(t *testing.T) {
	for _, mean := range []uint64{1, 5_000, 3_000_000} {
		s := &store{Store: wiretest.Store{Mean: mean}}
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

// No records are nothing to ask for, and what a request cannot be is not sent.
func TestWrongRuns(t *testing.T) {
	c := newClient(t, nil, wire.Config{})
	for _, runs := range [][]peers.Run{nil, {{First: 1, N: 0}}} {
		if err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, nil); !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%v: %v, want %v", runs, err, meta.ErrInvalid)
		}
	}
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	s := &store{file: filepath.Join(dir, "there")}
	everywhere(t, s, func(t *testing.T, _ *wire.Server, c *client) {
		for _, size := range []int{0, 1, 64 << 10, 3<<20 + 17} {
			text, _ := wiretest.Pieces(size, 1000)
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
			l, dial := wiretest.Pipe(t)
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
