package wire_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// gated is a store that waits for a token before each record, or for the end.
func gated(s *store) chan struct{} {
	tokens := make(chan struct{})
	s.Before = func(ctx context.Context) error {
		select {
		case <-tokens:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return tokens
}

// gatherOne asks for one record.
func gatherOne(ctx context.Context, c *wire.Client, s *store, wait time.Duration) error {
	return get(ctx, c, wait, one, [][]byte{make([]byte, s.Length(1))})
}

// A server has so much under way and so much waiting, and no more.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		tokens := gated(s)
		l, dial := wiretest.Pipe(t)
		server, stop := serve(t, l, s, wire.Limits{Requests: 2, PerPeer: 2, Queue: 3})
		defer stop()
		c := wire.New(dial, wire.Config{Conns: 20})
		defer wiretest.Close(t, c)
		errs := make(chan error, 20)
		for range 5 {
			go func() { errs <- gatherOne(t.Context(), c, s, 8*time.Second) }()
		}
		synctest.Wait()
		if n := server.Stats(); n.UnderWay != 2 || n.Queued != 3 {
			t.Fatalf("%+v, want 2 under way and 3 waiting", n)
		}
		for _, wait := range []time.Duration{0, 8 * time.Second} {
			begin := time.Now()
			if err := gatherOne(t.Context(), c, s, wait); !errors.Is(err, meta.ErrBusy) || time.Since(begin) != 0 {
				t.Fatalf("%v after %v, want %v at once", err, time.Since(begin), meta.ErrBusy)
			}
		}
		tokens <- struct{}{}
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := server.Stats(); n.UnderWay != 2 || n.Queued != 2 {
			t.Fatalf("%+v, want 2 under way and 2 waiting", n)
		}
		time.Sleep(8 * time.Second)
		for range 2 {
			if err := <-errs; !errors.Is(err, meta.ErrBusy) {
				t.Errorf("%v, want %v after it waited", err, meta.ErrBusy)
			}
		}
		close(tokens)
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := server.Stats(); n.Busy != 4 {
			t.Errorf("%d were too many, want 4", n.Busy)
		}
		synctest.Wait()
		if err := gatherOne(t.Context(), c, s, 0); err != nil {
			t.Errorf("when all is over: %v", err)
		}
	})
}

// A node that asks for much leaves the others their share.
func TestFairShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		tokens := gated(s)
		l, dial := wiretest.Pipe(t)
		names := []string{"greedy", "greedy", "greedy", "greedy", "greedy", "modest"}
		var at atomic.Int64
		server, stop := serve(t, l, s, wire.Limits{Requests: 3, PerPeer: 2, Name: func(net.Conn) string { return names[at.Add(1)-1] }})
		defer stop()
		c := wire.New(dial, wire.Config{Conns: 20})
		defer wiretest.Close(t, c)
		var all sync.WaitGroup
		for i := range names {
			all.Go(func() {
				if err := gatherOne(t.Context(), c, s, time.Minute); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			if n, want := server.Stats(), []int64{1, 2, 2, 2, 2, 3}[i]; n.UnderWay != want {
				t.Errorf("%d under way after %d, want %d", n.UnderWay, i+1, want)
			}
		}
		close(tokens)
		all.Wait()
	})
}

// Connections over a limit are closed, be it of all nodes or of one.
func TestTooManyConnections(t *testing.T) {
	for _, limits := range []wire.Limits{{Conns: 2}, {PeerConns: 2}} {
		synctest.Test(t, func(t *testing.T) {
			s := &store{Mean: 1000}
			tokens := gated(s)
			l, dial := wiretest.Pipe(t)
			server, stop := serve(t, l, s, limits)
			defer stop()
			c := wire.New(dial, wire.Config{})
			defer wiretest.Close(t, c)
			errs := make(chan error, 3)
			for range 3 {
				go func() { errs <- gatherOne(t.Context(), c, s, time.Minute) }()
				synctest.Wait()
			}
			if err := <-errs; !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("%v, want %v", err, meta.ErrUnavailable)
			}
			close(tokens)
			for range 2 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if n := server.Stats(); n.Refused != 1 {
				t.Errorf("%d refused, want 1", n.Refused)
			}
		})
	}
}

// Runs are only taken in while there is room for them.
func TestRunsFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1}
		tokens := gated(s)
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, s, wire.Limits{Runs: wire.MaxRuns})
		defer stop()
		c := wire.New(dial, wire.Config{})
		defer wiretest.Close(t, c)
		runs := make([]wire.Run, wire.MaxRuns)
		for i := range runs {
			runs[i] = wire.Run{First: 3, N: 1} // it is empty
		}
		first := make(chan error)
		go func() { first <- get(t.Context(), c, 0, runs, nil) }()
		synctest.Wait()
		if err := gatherOne(t.Context(), c, s, time.Minute); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("%v, want %v", err, meta.ErrBusy)
		}
		close(tokens)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := gatherOne(t.Context(), c, s, 0); err != nil {
			t.Error(err)
		}
	})
}

// A client has so many requests to a node under way; others wait, not for long.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		tokens := gated(s)
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, s, wire.Limits{})
		defer stop()
		c := wire.New(dial, wire.Config{Conns: 2})
		defer wiretest.Close(t, c)
		errs := make(chan error, 3)
		for range 3 {
			go func() { errs <- gatherOne(t.Context(), c, s, 0) }()
		}
		begin := time.Now()
		if err := <-errs; !errors.Is(err, meta.ErrBusy) || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v, want %v after 5s", err, time.Since(begin), meta.ErrBusy)
		}
		close(tokens)
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// Wherever a request is when it is given up, it ends then, on both sides.
func TestCancel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range cancels() {
		after := time.Duration(random.IntN(130))*time.Millisecond + time.Microsecond
		synctest.Test(t, func(t *testing.T) {
			s := &store{Mean: 100_000}
			s.Before = func(ctx context.Context) error {
				select {
				case <-time.After(10 * time.Millisecond):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			l, dial := wiretest.Pipe(t)
			server, stop := serve(t, l, s, wire.Limits{})
			defer stop()
			c := wire.New(func(ctx context.Context, n string) (net.Conn, error) {
				time.Sleep(5 * time.Millisecond)
				return dial(ctx, n)
			}, wire.Config{})
			defer wiretest.Close(t, c)
			runs := []wire.Run{{First: 1, N: 10}}
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			err := get(ctx, c, 0, runs, [][]byte{make([]byte, len(s.Want(runs)))})
			if (err != nil) != (after <= 105*time.Millisecond) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v", after, err)
			}
			synctest.Wait()
			if n := server.Stats(); n.UnderWay != 0 || n.Queued != 0 || err != nil && n.Conns != 0 {
				t.Errorf("after %v: %+v, want nothing under way", after, n)
			}
		})
	}
}

// cancels is how many moments of a call are tried.
func cancels() int {
	if testing.Short() {
		return 60
	}
	return 200
}

// Close ends what is under way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{Mean: 1000}
		gated(s)
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, s, wire.Limits{})
		defer stop()
		c := wire.New(dial, wire.Config{})
		failed := make(chan error)
		go func() { failed <- gatherOne(context.Background(), c, s, 0) }()
		synctest.Wait()
		go wiretest.Close(t, c)
		if err := <-failed; !errors.Is(err, meta.ErrBusy) {
			t.Errorf("%v, want %v", err, meta.ErrBusy)
		}
		synctest.Wait()
		if err := gatherOne(t.Context(), c, s, 0); !errors.Is(err, meta.ErrBusy) {
			t.Errorf("after close: %v, want %v", err, meta.ErrBusy)
		}
	})
}

// A node that left is forgotten, with its connections.
func TestKeep(t *testing.T) {
	l, dial := wiretest.Pipe(t)
	s := &store{Mean: 1000}
	serve(t, l, s, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	for range 3 {
		gather(t, c, s, one, 1000)
		if n := len(c.Nodes()); n != 1 {
			t.Errorf("%d nodes known, want 1", n)
		}
		c.Keep(func(node string) bool { return node != "n" })
		if n := c.Stats(); len(c.Nodes()) != 0 || n.Conns != 0 {
			t.Errorf("%+v, want nothing left", n)
		}
	}
}

// A gibibyte goes through a few hundred kilobytes.
func TestMemory(t *testing.T) {
	s := &zeros{}
	l, dial := wiretest.TLS(t)
	serve(t, l, s, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	dst := make([]byte, 64<<20)
	get := func() {
		err := get(t.Context(), c, 0, []wire.Run{{First: 1, N: 64}}, [][]byte{dst})
		if err != nil {
			t.Fatal(err)
		}
	}
	// It is 2 MiB, of crypto/tls above all; with the race detector, for which
	// sync.Pool forgets things, 80.
	staysOffTheHeap(t, 128<<20, get)
}

// staysOffTheHeap moves 64 MiB, and then a GiB, or a quarter of that in short tests, by which
// no more may be allocated than most, or a quarter, and nothing stay in use.
func staysOffTheHeap(t *testing.T, most uint64, move func()) {
	t.Helper()
	move()
	times := uint64(16)
	if testing.Short() {
		times, most = times/4, most/4
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range times {
		move()
	}
	runtime.GC() // what is not collected yet may be as much as what is in use
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d KiB were allocated for %d MiB", n>>10, times*64)
	}
	if after.HeapAlloc > before.HeapAlloc+8<<20 {
		t.Errorf("the heap grew from %d to %d KiB", before.HeapAlloc>>10, after.HeapAlloc>>10)
	}
}

// zeros has records of 1 MiB that are all the same.
type zeros struct {
	store
	page [1 << 20]byte
}

func (z *zeros) Gather(_ context.Context, _ [32]byte, runs []wire.Run, emit func([]byte) error) error {
	for _, r := range runs {
		for range r.N {
			if err := emit(z.page[:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A wrong limit is found at once.
func TestLimits(t *testing.T) {
	if _, err := wire.NewServer(wire.Limits{Runs: 5}, nil, calls(&store{})); !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("%v, want %v", err, meta.ErrInvalid)
	}
}

// Errors of Accept that pass are waited out; others end Serve.
func TestAcceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := wire.NewServer(wire.Limits{}, nil, calls(&store{}))
		if err != nil {
			t.Fatal(err)
		}
		l := &failing{errs: []error{passing{}, passing{}, errors.New("gone")}}
		err = server.Serve(t.Context(), l)
		if err == nil || len(l.errs) != 0 || !l.closed {
			t.Errorf("%v, %d errors left", err, len(l.errs))
		}
	})
}

type failing struct {
	net.Listener
	errs   []error
	closed bool
}

func (f *failing) Accept() (net.Conn, error) {
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, fmt.Errorf("accept: %w", err)
}

func (f *failing) Close() error { f.closed = true; return nil }

type passing struct{}

func (passing) Error() string   { return "too many open files" }
func (passing) Temporary() bool { return true }
