package peers_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch/peers"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// A racer is a node whose store takes a settable time for a record.
type racer struct {
	*client
	store *store
	slow  atomic.Int64
	dst   []byte
}

var one = []peers.Run{{First: 1, N: 1}}

// race runs f in a bubble, with a racer.
func race(t *testing.T, f func(t *testing.T, r *racer)) {
	synctest.Test(t, func(t *testing.T) {
		r := &racer{store: &store{Store: wiretest.Store{Mean: 1000}}}
		r.store.Before = func(ctx context.Context) error {
			select {
			case <-time.After(time.Duration(r.slow.Load())):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		l, dial := wiretest.Pipe(t)
		_, stop := serve(t, l, r.store, wire.Limits{})
		defer stop()
		r.client = connect(dial, wire.Config{})
		defer wiretest.Close(t, r.wire)
		r.dst = make([]byte, r.store.Length(1))
		f(t, r)
	})
}

// run hedges a request of one record, with a fallback that takes so long, and says how
// long it took.
func (r *racer) run(t *testing.T, takes time.Duration, fails error) (spare bool, took time.Duration, err error) {
	t.Helper()
	return r.hedge(t, peers.Want{Dataset: dataset, Runs: one}, takes, fails)
}

func (r *racer) hedge(t *testing.T, w peers.Want, takes time.Duration, fails error) (spare bool, took time.Duration, err error) {
	t.Helper()
	begin := time.Now()
	under := false
	spare, err = r.Hedge(t.Context(), "n", w, [][]byte{r.dst}, func(ctx context.Context) error {
		under = true
		defer func() { under = false }()
		select {
		case <-time.After(takes):
			return fails
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if under || r.Stats().UnderWay != 0 {
		t.Error("a request is still under way")
	}
	return spare, time.Since(begin), err
}

// learn makes the racer known for requests that take so long.
func (r *racer) learn(t *testing.T, takes time.Duration) {
	t.Helper()
	r.slow.Store(int64(takes))
	for range 50 {
		if err := r.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: one}, [][]byte{r.dst}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHedge(t *testing.T) {
	const ms = time.Millisecond
	bad := errors.New("bad disk")
	for _, test := range []struct {
		name       string
		usual, now time.Duration // of the node
		fallback   time.Duration
		fails      error
		took       time.Duration
		spare      bool
		begun, won uint64
	}{
		{"as usual", 100 * ms, 99 * ms, time.Hour, nil, 99 * ms, false, 0, 0},
		{"the node is late and first", 100 * ms, 150 * ms, time.Hour, nil, 150 * ms, false, 1, 0},
		{"the fallback is first", 100 * ms, 500 * ms, 50 * ms, nil, 150 * ms, true, 1, 1},
		{"never before 20 ms", 1 * ms, time.Second, 5 * ms, nil, 25 * ms, true, 1, 1},
		{"the fallback fails", 100 * ms, 500 * ms, 50 * ms, bad, 500 * ms, false, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			race(t, func(t *testing.T, r *racer) {
				r.learn(t, test.usual)
				r.slow.Store(int64(test.now))
				spare, took, err := r.run(t, test.fallback, test.fails)
				if spare != test.spare || took != test.took || err != nil {
					t.Errorf("spare %v after %v, %v; want %v after %v", spare, took, err, test.spare, test.took)
				}
				if begun, won := r.Hedges(); begun != test.begun || won != test.won {
					t.Errorf("%d begun, %d won, want %d and %d", begun, won, test.begun, test.won)
				}
				if !spare && string(r.dst) != string(r.store.Want(one)) {
					t.Error("wrong bytes")
				}
			})
		})
	}
}

// Of a node that nothing is known of yet, a second is not too much.
func TestHedgeBlind(t *testing.T) {
	race(t, func(t *testing.T, r *racer) {
		r.slow.Store(int64(5 * time.Second))
		if spare, took, err := r.run(t, 0, nil); !spare || took != time.Second || err != nil {
			t.Errorf("spare %v after %v, %v; want it after 1s", spare, took, err)
		}
	})
}

// What a node is to serve alone is not raced, however long it takes, and has the fallback
// only where the node fails.
func TestServedAlone(t *testing.T) {
	alone := peers.Want{Dataset: dataset, Runs: one, Alone: true}
	race(t, func(t *testing.T, r *racer) {
		r.slow.Store(int64(5 * time.Second))
		if spare, took, err := r.hedge(t, alone, 0, nil); spare || took != 5*time.Second || err != nil {
			t.Errorf("spare %v after %v, %v; want the node's after 5s", spare, took, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &racer{client: connect(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }, wire.Config{})}
		defer wiretest.Close(t, r.wire)
		if spare, _, err := r.hedge(t, alone, time.Millisecond, nil); !spare || err != nil {
			t.Errorf("where the node fails: spare %v, %v", spare, err)
		}
	})
}

// Where the node fails the fallback begins at once. Where that fails too it is that, and not a
// node that cannot be reached, for which there are no bytes.
func TestHedgeOfFailure(t *testing.T) {
	bad := errors.New("bad disk")
	synctest.Test(t, func(t *testing.T) {
		r := &racer{client: connect(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }, wire.Config{})}
		defer wiretest.Close(t, r.wire)
		if spare, took, err := r.run(t, time.Millisecond, nil); !spare || took != time.Millisecond || err != nil {
			t.Errorf("spare %v after %v, %v; want it after 1ms", spare, took, err)
		}
		if spare, _, err := r.run(t, 0, bad); spare || !errors.Is(err, bad) || errors.Is(err, meta.ErrUnavailable) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("spare %v, %v; want that of the fallback, in the words of both", spare, err)
		}
	})
}

// A node that has become slow is raced until that is known, not for ever.
func TestHedgesEnd(t *testing.T) {
	race(t, func(t *testing.T, r *racer) {
		r.learn(t, 10*time.Millisecond)
		for i := range 300 {
			r.slow.Store(int64(time.Duration(200+i*7%40) * time.Millisecond))
			if _, _, err := r.run(t, 300*time.Millisecond, nil); err != nil {
				t.Fatal(err)
			}
		}
		if begun, _ := r.Hedges(); begun == 0 || begun > 60 {
			t.Errorf("%d of 300 raced, want a few", begun)
		}
	})
}

// One that says nothing at all is soon not asked, and all goes to the source.
func TestHedgesOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := func(context.Context, string) (net.Conn, error) {
			here, there := net.Pipe()
			go io.Copy(io.Discard, there) // it takes all and says nothing
			return here, nil
		}
		r := &racer{client: connect(dead, wire.Config{})}
		defer wiretest.Close(t, r.wire)
		r.dst = make([]byte, 10)
		for i, want := range []time.Duration{1010, 1010, 1010, 10, 10} {
			spare, took, err := r.run(t, 10*time.Millisecond, nil)
			if !spare || took != want*time.Millisecond || err != nil {
				t.Errorf("turn %d: spare %v after %v, %v; want it after %d ms", i, spare, took, err, want)
			}
		}
		if p := r.Nodes(); len(p) != 1 || p[0].BackOff <= 0 {
			t.Errorf("%+v, want it to rest", p)
		}
	})
}

// A node that the cluster says is down is not waited for, whether another way runs beside it or not.
func TestGoneDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := func(context.Context, string) (net.Conn, error) {
			here, there := net.Pipe()
			go io.Copy(io.Discard, there)
			return here, nil
		}
		r := &racer{client: connect(dead, wire.Config{})}
		defer wiretest.Close(t, r.wire)
		r.dst = make([]byte, 10)
		goesDown := func() {
			r.wire.Follow([]string{"n"})
			time.AfterFunc(2*time.Second, func() { r.wire.Follow(nil) })
		}
		goesDown()
		begin, want := time.Now(), peers.Want{Dataset: dataset, Runs: one}
		if err := r.Gather(t.Context(), "n", want, [][]byte{r.dst}); !errors.Is(err, meta.ErrUnavailable) || time.Since(begin) != 2*time.Second {
			t.Errorf("given up after %v: %v", time.Since(begin), err)
		}
		goesDown()
		want.Alone = true
		if spare, took, err := r.hedge(t, want, time.Millisecond, nil); !spare || took != 2001*time.Millisecond || err != nil {
			t.Errorf("spare %v after %v, %v; want it when the node has gone down", spare, took, err)
		}
	})
}

// A race that was lost counts too, or a node that has begun to be slow would
// be taken for as fast as ever.
func TestLostRacesCount(t *testing.T) {
	race(t, func(t *testing.T, r *racer) {
		first := r.store.Before
		var at atomic.Int64
		r.store.Before = func(ctx context.Context) error {
			if at.Add(1)%2 == 1 {
				return nil // something is heard of it at once
			}
			return first(ctx)
		}
		r.store.Mean = 100_000
		two := []peers.Run{{First: 1, N: 1}, {First: 8, N: 1}}
		dst := make([]byte, len(r.store.Want(two)))
		for range 50 {
			if err := r.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: two}, [][]byte{dst}); err != nil {
				t.Fatal(err)
			}
		}
		spares := 0
		for i := range 100 {
			at.Store(0)
			r.slow.Store(int64(time.Duration(200+i*7%40) * time.Millisecond))
			spare, err := r.Hedge(t.Context(), "n", peers.Want{Dataset: dataset, Runs: two}, [][]byte{dst}, func(ctx context.Context) error {
				time.Sleep(50 * time.Millisecond)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if spare {
				spares++
			}
		}
		if spares == 0 || spares > 30 {
			t.Errorf("%d of 100 races lost, want a few", spares)
		}
	})
}
