package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// What is pulled beside these pushes is as long as was asked for.
var pulls = wire.Calls{callPull: func(_ context.Context, q wire.Request, a wire.Answer) error { return a.Emit(pattern(int(q.Bytes))) }}

func TestPush(t *testing.T) {
	for _, w := range wiretest.Networks {
		t.Run(w.Name, func(t *testing.T) {
			l, dial := w.Listen(t)
			k := newKeeper()
			server, _ := k.serve(t, l, wire.Limits{})
			c := newClient(t, dial, wire.Config{})
			pushes, sum := uint64(0), uint64(0)
			for _, size := range []int{0, 1, 100, 64 << 10, 1<<20 + 1, 3<<20 + 17} {
				for _, known := range []bool{false, true} {
					for _, shape := range []struct{ room, ahead, piece int }{{4 << 20, 0, 4 << 20}, {1000, 200_000, 70_000}, {100_000, 1 << 20, 999}, {50_000, 0, 40_000}} {
						k.room, k.ahead = shape.room, shape.ahead
						whole := pattern(size)
						q := wire.Request{Call: callPush}
						if known {
							q.Bytes = uint64(size)
						}
						result, err := c.Push(t.Context(), "n", q, func(_ context.Context, emit func([]byte) error) error {
							b := make([]byte, shape.piece)
							for at := 0; at < size; {
								n := copy(b, whole[at:])
								if err := emit(b[:n]); err != nil {
									return err
								}
								clear(b) // it was only lent
								at += n
							}
							return nil
						})
						if err != nil || len(result) != 8 || binary.LittleEndian.Uint64(result) != uint64(size) {
							t.Fatalf("%d bytes, %+v: %v, it has %v", size, shape, err, result)
						}
						if end := <-k.ends; end.err != nil || !bytes.Equal(end.got, whole) {
							t.Fatalf("%d bytes, %+v: wrong bytes, %v", size, shape, end.err)
						}
						pushes, sum = pushes+1, sum+uint64(size)
					}
				}
			}
			n, of, by := c.Stats(), c.Nodes()[0], server.Visitors()[0]
			if n.Dials != 1 || n.Requests != pushes || server.Stats().Requests != pushes {
				t.Errorf("%+v, want %d requests on one connection", n, pushes)
			}
			if n.BytesOut < sum || n.BytesOut != of.BytesOut || of.BytesOut != by.BytesIn || by.BytesIn != server.Stats().BytesIn {
				t.Errorf("%d bytes pushed: the client counts %d, %d of its node; the server %d of its, %d", sum, n.BytesOut, of.BytesOut, by.BytesIn, server.Stats().BytesIn)
			}
		})
	}
}

// A file is pushed while it is being written, now and then; its length is not known
// beforehand.
func TestPushOfAGrowingFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "attempt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole := pattern(1<<20 + 5)
	inBubble(t, newKeeper(), wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		grown := make(chan struct{})
		go func() {
			defer close(grown)
			for at := 0; at < len(whole); {
				time.Sleep(25 * time.Second)
				n, err := f.Write(whole[at:min(at+200_000, len(whole))])
				if err != nil {
					t.Error(err)
					return
				}
				at += n
				grown <- struct{}{}
			}
		}()
		if err := p.push(t, wire.From(&tail{from: f, grown: grown})); err != nil {
			t.Fatal(err)
		}
		if end := <-p.ends; end.err != nil || !bytes.Equal(end.got, whole) {
			t.Errorf("%d bytes, %v", len(end.got), end.err)
		}
		p.wellAgain(t, 1)
	})
}

// A tail reads a file to where it has grown, until it grows no more.
type tail struct {
	from  *os.File
	at    int64
	grown <-chan struct{}
}

func (r *tail) Read(p []byte) (int, error) {
	for {
		n, err := r.from.ReadAt(p, r.at)
		r.at += int64(n)
		if n > 0 || err != io.EOF {
			return n, nil
		}
		if _, ok := <-r.grown; !ok {
			return 0, io.EOF
		}
	}
}

// Nothing is sent that was not granted, be it for a while, and what was is sent.
func TestOnlyWhatWasGranted(t *testing.T) {
	k := newKeeper()
	room := int64(k.room)
	const pause = 25100 * time.Millisecond // never ends as a sign of life is due, which would send half of what is granted
	k.each = func(context.Context, int) error {
		time.Sleep(pause)
		return nil
	}
	inBubble(t, k, wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		var emitted atomic.Int64
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := p.client.Push(ctx, "n", wire.Request{Call: callPush}, endless(1000, &emitted))
			done <- err
		}()
		time.Sleep(24 * time.Second)
		if n := emitted.Load(); n != 0 {
			t.Errorf("%d bytes of the feed were taken, want none", n)
		}
		for i := range int64(20) {
			time.Sleep(pause)
			if n := emitted.Load(); n < room*(i+1)-1000 || n > room*(i+1) {
				t.Errorf("after %d reads %d bytes of the feed were taken", i+1, n)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
		synctest.Wait()
		if end := <-p.ends; end.err == nil {
			t.Error("what was given up is whole")
		}
	})
}

// Where a push comes to fails at once, by an error that keeps its kind, however much of
// it was still to come; the connection goes on.
func TestReceiverFails(t *testing.T) {
	for _, kind := range []error{meta.ErrNotExist, meta.ErrExist, meta.ErrNoSpace, meta.ErrBusy, meta.ErrDenied, meta.ErrCorrupt, meta.ErrUnavailable} {
		for _, at := range []int{0, 1, 300_000} {
			t.Run(fmt.Sprintf("%v at %d", kind, at), func(t *testing.T) {
				k := newKeeper()
				k.ahead = 1 << 20
				k.each = func(_ context.Context, had int) error {
					if had >= at {
						return fmt.Errorf("room\nfor a copy: %w", kind)
					}
					return nil
				}
				inBubble(t, k, wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
					begin := time.Now()
					var emitted atomic.Int64
					err := p.push(t, endless(5000, &emitted))
					if !errors.Is(err, kind) || !strings.Contains(err.Error(), "room?for a copy") || time.Since(begin) != 0 {
						t.Errorf("%v after %v, want %v at once", err, time.Since(begin), kind)
					}
					if n := p.client.Nodes()[0]; n.Failures != 0 {
						t.Errorf("%+v, want the node well", n)
					}
					p.wellAgain(t, 1)
				})
			})
		}
	}
}

// One that fails once all is there fails as well.
func TestReceiverFailsAtTheEnd(t *testing.T) {
	k := newKeeper()
	k.then = func(context.Context, []byte) error { return fmt.Errorf("sync: %w", meta.ErrNoSpace) }
	inBubble(t, k, wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		if err := p.push(t, of(100_000)); !errors.Is(err, meta.ErrNoSpace) {
			t.Errorf("%v, want %v", err, meta.ErrNoSpace)
		}
		p.wellAgain(t, 1)
	})
}

// A feed that fails is told so to the other node, which takes nothing for whole, and is
// not to blame.
func TestSenderFails(t *testing.T) {
	bad := errors.New("bad disk")
	for _, test := range []struct {
		name  string
		bytes uint64 // that were said
		after int    // that were emitted
		fails error
		want  error // here
		there error
	}{
		{"at once", 0, 0, bad, bad, meta.ErrUnavailable},
		{"in the middle", 0, 200_000, bad, bad, meta.ErrUnavailable},
		{"with a kind", 0, 200_000, fmt.Errorf("%w: %w", meta.ErrStale, bad), bad, meta.ErrStale},
		{"of a known length", 300_000, 200_000, bad, bad, meta.ErrUnavailable},
		{"too short", 200_001, 200_000, nil, meta.ErrInvalid, meta.ErrInvalid},
		{"too long", 199_999, 200_000, nil, meta.ErrInvalid, meta.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, newKeeper(), wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
				for range 5 {
					_, err := p.client.Push(t.Context(), "n", wire.Request{Call: callPush, Bytes: test.bytes}, func(_ context.Context, emit func([]byte) error) error {
						return errors.Join(emit(pattern(test.after)), test.fails)
					})
					if !errors.Is(err, test.want) {
						t.Errorf("%v, want %v", err, test.want)
					}
					if end := <-p.ends; !errors.Is(end.err, test.there) {
						t.Errorf("the other node is told %v, want %v", end.err, test.there)
					}
				}
				if n := p.client.Nodes()[0]; n.Failures != 0 || n.Failed != 0 {
					t.Errorf("%+v, want the node well", n)
				}
				p.wellAgain(t, 1)
			})
		})
	}
}

// A feed that takes its end for that of its data is not whole.
func TestFeedThatIsEnded(t *testing.T) {
	inBubble(t, newKeeper(), wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		err := p.push(t, func(ctx context.Context, emit func([]byte) error) error {
			err := emit(pattern(100))
			<-ctx.Done()
			return err
		})
		if !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("%v, want %v", err, meta.ErrUnavailable)
		}
		if end := <-p.ends; !errors.Is(end.err, meta.ErrUnavailable) {
			t.Errorf("the other node is told %v, want %v", end.err, meta.ErrUnavailable)
		}
	})
}

// A node that has no need of what is pushed does not get it.
func TestPushThatIsNotNeeded(t *testing.T) {
	l, dial := wiretest.TLS(t)
	wiretest.Serve(t, l, nil, wire.Pushes{callPush: func(context.Context, wire.Request, *wire.Stream) ([]byte, error) {
		return []byte("is here"), nil
	}}, wire.Limits{})
	c := newClient(t, dial, wire.Config{})
	for range 3 {
		result, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, func(context.Context, func([]byte) error) error {
			t.Error("data is asked for")
			return nil
		})
		if string(result) != "is here" || err != nil {
			t.Errorf("%q, %v", result, err)
		}
	}
	if n := c.Stats().Dials; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// What was not read to its end is no success, nor is one with too much to say; the
// connection goes on.
func TestWrongPushes(t *testing.T) {
	for _, test := range []struct {
		name string
		push wire.Push
	}{
		{"not read", func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			return nil, in.Grant(1 << 20)
		}},
		{"half read", func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			_, err := io.ReadFull(in, make([]byte, 500))
			return nil, err
		}},
		{"read, but for the end", func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			_, err := io.ReadFull(in, make([]byte, 1000))
			return nil, err
		}},
		{"a long result", func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			_, err := io.Copy(io.Discard, in)
			return make([]byte, wire.MaxResult+1), err
		}},
		{"more than can be granted", func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
			return nil, in.Grant(1 << 63)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dial := wiretest.Pipe(t)
				_, stop := wiretest.Serve(t, l, nil, wire.Pushes{callPush: test.push}, wire.Limits{})
				defer stop()
				c := wire.New(dial, wire.Config{})
				defer wiretest.Close(t, c)
				for range 3 {
					if _, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, of(1000)); !errors.Is(err, meta.ErrInvalid) {
						t.Errorf("%v, want %v", err, meta.ErrInvalid)
					}
				}
				if n := c.Stats().Dials; n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		})
	}
}

// Where a piece that is pushed is mapped, and cut short, that is the feed's failure; where
// it is read to there is no room.
func TestMappedPushes(t *testing.T) {
	for _, w := range wiretest.Networks[1:] { // on a net.Pipe a writer waits for ever for a reader that fell
		for _, size := range []int{10_000, 3 << 20} {
			t.Run(fmt.Sprint(w.Name, " ", size), func(t *testing.T) {
				l, dial := w.Listen(t)
				k := newKeeper()
				var into []byte // nil: read as usual
				pushes := k.pushes()
				keep := pushes[callPush]
				pushes[callPush] = func(ctx context.Context, q wire.Request, in *wire.Stream) ([]byte, error) {
					if into == nil {
						return keep(ctx, q, in)
					}
					_, err := io.ReadFull(in, into)
					return nil, err
				}
				server, _ := wiretest.Serve(t, l, pulls, pushes, wire.Limits{})
				p := &pair{k, server, newClient(t, dial, wire.Config{})}
				for range 5 {
					mem := holed(t, size)
					err := p.push(t, func(_ context.Context, emit func([]byte) error) error { return emit(mem) })
					if !errors.Is(err, meta.ErrStale) {
						t.Errorf("%v, want %v", err, meta.ErrStale)
					}
					if end := <-k.ends; end.err == nil {
						t.Error("half of it is whole")
					}
				}
				if n := p.client.Nodes()[0]; n.Failures != 0 {
					t.Errorf("%+v, want the node well", n)
				}
				into = holed(t, size)
				if err := p.push(t, of(size)); !errors.Is(err, meta.ErrNoSpace) {
					t.Errorf("%v, want %v", err, meta.ErrNoSpace)
				}
				into = nil
				p.wellAgain(t, p.client.Stats().Dials+1)
			})
		}
	}
}
