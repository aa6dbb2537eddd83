package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// Pushes and pulls are bounded apart, on both sides: neither waits for the others.
func TestPushesAndPullsApart(t *testing.T) {
	k := newKeeper()
	tokens := make(chan struct{})
	wait := func(ctx context.Context) error {
		select {
		case <-tokens:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.each = func(ctx context.Context, _ int) error { return wait(ctx) }
	inBubble(t, k, wire.Limits{Requests: 2, PerPeer: 2, Pushes: 2, PerPusher: 2}, wire.Config{Conns: 2, Pushes: 3}, func(t *testing.T, p *pair) {
		tokens = make(chan struct{})
		errs := make(chan error, 10)
		for range 2 {
			go func() { errs <- p.push(t, of(1000)) }()
		}
		synctest.Wait()
		if n := p.server.Stats(); n.UnderWay != 2 || n.Queued != 0 {
			t.Fatalf("%+v, want 2 pushes under way", n)
		}
		got := make([]byte, 1000)
		if err := p.client.Pull(t.Context(), "n", wire.Request{Call: callPull, Bytes: 1000}, wire.NewScatter([][]byte{got})); err != nil {
			t.Errorf("a pull beside them: %v", err)
		}
		begin := time.Now()
		if err := p.push(t, of(1000)); !errors.Is(err, meta.ErrBusy) || time.Since(begin) != 0 {
			t.Errorf("a third push: %v after %v, want %v at once", err, time.Since(begin), meta.ErrBusy)
		}
		go func() { // it waits on the other side
			_, err := p.client.Push(t.Context(), "n", wire.Request{Call: callPush, Wait: 8 * time.Second}, of(1000))
			errs <- err
		}()
		synctest.Wait()
		if n := p.server.Stats(); n.UnderWay != 2 || n.Queued != 1 {
			t.Fatalf("%+v, want 2 pushes under way, one queued", n)
		}
		if err := p.push(t, of(1000)); !errors.Is(err, meta.ErrBusy) || time.Since(begin) != 5*time.Second {
			t.Errorf("a fourth push: %v after %v, want %v after 5s", err, time.Since(begin), meta.ErrBusy)
		}
		close(tokens)
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// Many of both at once, between two nodes that push to each other and pull, come through
// whole, within the bounds, and leave no descriptor.
func TestManyPushesAndPulls(t *testing.T) {
	l, _ := wiretest.TCP(t) // with what the runtime opens for the first
	l.Close()
	before := descriptors(t)
	t.Run("", func(t *testing.T) {
		const turn = 10 * time.Minute // each waits for it as long as it takes
		var most, now atomic.Int64
		sides := make([]*pair, 2)
		for i := range sides {
			l, dial := wiretest.TLS(t)
			k := newKeeper()
			k.ahead = 100_000
			k.each = func(_ context.Context, had int) error {
				if had == 0 {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
				}
				return nil
			}
			k.then = func(context.Context, []byte) error { now.Add(-1); return nil }
			server, _ := k.serve(t, l, wire.Limits{Pushes: 3, Requests: 3})
			sides[i] = &pair{k, server, newClient(t, dial, wire.Config{Wait: turn})}
		}
		var all sync.WaitGroup
		for i := range 60 {
			for _, p := range sides {
				size := i*9973 + 1
				all.Go(func() {
					q := wire.Request{Call: callPush, Wait: turn}
					result, err := p.client.Push(t.Context(), "n", q, of(size))
					if err != nil || binary.LittleEndian.Uint64(result) != uint64(size) {
						t.Errorf("%d bytes pushed: %v, %v", size, result, err)
					}
				})
				all.Go(func() {
					got := make([]byte, size)
					q := wire.Request{Call: callPull, Wait: turn, Bytes: uint64(size)}
					if err := p.client.Pull(t.Context(), "n", q, wire.NewScatter([][]byte{got})); err != nil || !bytes.Equal(got, pattern(size)) {
						t.Errorf("%d bytes pulled: %v", size, err)
					}
				})
			}
		}
		all.Wait()
		if n := most.Load(); n > 6 {
			t.Errorf("%d pushes were under way, want 3 on each side at most", n)
		}
		for _, p := range sides {
			if n := len(p.ends); n != 60 {
				t.Errorf("%d of 60 pushes came", n)
			}
			for range len(p.ends) {
				if end := <-p.ends; end.err != nil || !bytes.Equal(end.got, pattern(len(end.got))) {
					t.Errorf("%d bytes, %v", len(end.got), end.err)
				}
			}
			if n := p.client.Stats(); n.Dials > 8 {
				t.Errorf("%d connections, want 8 at most", n.Dials)
			}
		}
	})
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A gibibyte is pushed, from a file, by a few hundred kilobytes.
func TestPushMemory(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 64 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	l, dial := wiretest.TLS(t)
	p := make([]byte, 1<<20)
	wiretest.Serve(t, l, nil, wire.Pushes{callPush: func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
		for {
			if err := in.Grant(4 << 20); err != nil {
				return nil, err
			}
			for n := 0; n < 4<<20; {
				m, err := in.Read(p)
				if err == io.EOF {
					return nil, nil
				}
				if err != nil {
					return nil, err
				}
				n += m
			}
		}
	}}, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	put := func() {
		if _, err := c.Push(t.Context(), "n", wire.Request{Call: callPush, Bytes: size}, wire.From(io.NewSectionReader(f, 0, size))); err != nil {
			t.Fatal(err)
		}
	}
	// It is 1 MiB; with the race detector, for which sync.Pool forgets things, 150.
	staysOffTheHeap(t, 256<<20, put)
}
