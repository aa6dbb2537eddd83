package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// A course is one push, with all kinds of frames in it, or one that fails.
type course struct {
	name       string
	feed       wire.Feed
	each       func(ctx context.Context, had int) error // of the keeper
	here, well bool                                     // the feed fails; nothing does
}

var errBad = errors.New("bad disk")

var courses = []course{
	{name: "whole", well: true, feed: slowly, each: func(_ context.Context, had int) error {
		if had == 0 {
			time.Sleep(4500 * time.Millisecond) // so that it says that it is alive
		}
		return nil
	}},
	{name: "the feed fails", here: true, feed: func(_ context.Context, emit func([]byte) error) error {
		return errors.Join(emit(pattern(20)), errBad)
	}},
	{name: "the receiver fails", feed: slowly, each: full},
}

// full has no room after the first bytes.
func full(_ context.Context, had int) error {
	if had > 0 {
		return meta.ErrNoSpace
	}
	return nil
}

// slowly emits 40 bytes, with a sign of life between them.
func slowly(_ context.Context, emit func([]byte) error) error {
	if err := emit(pattern(40)[:20]); err != nil {
		return err
	}
	time.Sleep(7 * time.Second)
	return emit(pattern(40)[20:])
}

// A way is one direction of a connection, as its client's side sees it, and what is done
// to it: something to a bit, or to all from a byte on.
type way struct {
	at          int
	flip        bool // the bit
	cut, vanish bool // all from the byte on, the connection or what it carries
	seen        int  // bytes that went by
}

// meddle changes p, of which left go on.
func (w *way) meddle(p []byte) (left int) {
	from := w.seen
	w.seen += len(p)
	switch {
	case w.flip && w.at/8 >= from && w.at/8 < w.seen:
		p[w.at/8-from] ^= 1 << (w.at % 8)
	case (w.cut || w.vanish) && w.at < w.seen:
		return max(0, w.at-from)
	}
	return len(p)
}

// A meddled connection is one with two such ways.
type meddled struct {
	net.Conn
	in, out *way
}

func (m *meddled) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		left := m.in.meddle(p[:n])
		if m.in.cut && left < n {
			m.Conn.Close()
		}
		if left > 0 || err != nil {
			return left, err
		}
	}
}

func (m *meddled) Write(p []byte) (int, error) {
	b := bytes.Clone(p)
	left := m.out.meddle(b)
	if left > 0 {
		if n, err := m.Conn.Write(b[:left]); err != nil {
			return n, err
		}
	}
	if m.out.cut && left < len(p) {
		m.Conn.Close()
		return left, io.ErrClosedPipe
	}
	return len(p), nil
}

// run takes a course over ways that are meddled with, and returns what came of it here
// and there, where it came to be called.
func (c course) run(t *testing.T, in, out *way) (there *ended, took time.Duration, stats wire.ClientStats, err error) {
	k := newKeeper()
	k.room, k.each = 64, c.each
	synctest.Test(t, func(t *testing.T) {
		k.ends = make(chan ended, 1)
		l, dial := wiretest.Pipe(t)
		_, stop := k.serve(t, l, wire.Limits{})
		defer stop()
		client := wire.New(func(ctx context.Context, node string) (net.Conn, error) {
			conn, err := dial(ctx, node)
			return &meddled{conn, in, out}, err
		}, wire.Config{Beat: 2 * time.Second}) // never in the same moment as the server's
		defer wiretest.Close(t, client)
		begin := time.Now()
		_, err = client.Push(t.Context(), "n", wire.Request{Call: callPush}, c.feed)
		took = time.Since(begin)
		stats = client.Stats()
		time.Sleep(3 * time.Minute) // both sides have ended long before
		synctest.Wait()
		select {
		case end := <-k.ends:
			there = &end
		default:
		}
	})
	return there, took, stats, err
}

// lengths are what a course comes to on the wire, both ways.
func (c course) lengths(t *testing.T) (in, out int) {
	t.Helper()
	var ways [2]way
	there, _, _, err := c.run(t, &ways[0], &ways[1])
	if c.well != (err == nil) || there == nil || c.well != (there.err == nil) || c.here != errors.Is(err, errBad) {
		t.Fatalf("%v here, %+v there", err, there)
	}
	return ways[0].seen, ways[1].seen
}

// No bit of a push can be flipped, in either direction.
func TestFlippedBitsOfPushes(t *testing.T) {
	for _, c := range courses {
		t.Run(c.name, func(t *testing.T) {
			in, out := c.lengths(t)
			for bit := range 8 * in {
				_, _, stats, err := c.run(t, &way{flip: true, at: bit}, new(way))
				if !c.here && (!errors.Is(err, meta.ErrCorrupt) || stats.CorruptStreams != 1) || err == nil {
					t.Errorf("bit %d of byte %d of the answer: %v, want %v, counted", bit%8, bit/8, err, meta.ErrCorrupt)
				}
			}
			for bit := range 8 * out {
				there, _, _, err := c.run(t, new(way), &way{flip: true, at: bit})
				want := meta.ErrCorrupt
				if bit < 8*64 {
					want = meta.ErrUnavailable // the request: it hangs up
				}
				if c.well && !errors.Is(err, want) || err == nil {
					t.Errorf("bit %d of byte %d: %v, want %v", bit%8, bit/8, err, want)
				}
				if there != nil && there.err == nil {
					t.Errorf("bit %d of byte %d: it is taken for whole", bit%8, bit/8)
				}
			}
		})
	}
}

// Wherever a push is cut off, or hangs, both sides end, by an error, and nothing is whole
// of which the end was missing.
func TestCutPushes(t *testing.T) {
	for _, c := range courses {
		t.Run(c.name, func(t *testing.T) {
			in, out := c.lengths(t)
			for _, hangs := range []bool{false, true} {
				check := func(name string, at int, w way, ways func(w *way) (in, out *way), all bool) {
					w.at, w.cut, w.vanish = at, !hangs, hangs
					i, o := ways(&w)
					there, took, _, err := c.run(t, i, o)
					if err == nil || c.well && !errors.Is(err, meta.ErrUnavailable) || took > time.Minute {
						t.Errorf("%s ends at %d, it hangs %v: %v after %v, want %v", name, at, hangs, err, took, meta.ErrUnavailable)
					}
					if !all && there != nil && there.err == nil {
						t.Errorf("%s ends at %d, it hangs %v: it is taken for whole", name, at, hangs)
					}
				}
				for at := range in {
					check("the answer", at, way{}, func(w *way) (*way, *way) { return w, new(way) }, true)
				}
				for at := range out {
					check("what is sent", at, way{}, func(w *way) (*way, *way) { return new(way), w }, false)
				}
			}
		})
	}
}

// One that stalls is given up, and for how long it was waited is known; one that moves,
// however slowly, is not.
func TestStalledReceivers(t *testing.T) {
	const granted = 100_000
	credit := binary.LittleEndian.AppendUint64(nil, granted)
	for _, test := range []struct {
		name     string
		reply    reply
		min, max time.Duration
	}{
		{"it grants nothing", func(c net.Conn, q []byte) { answer(q).sendOn(c, frameWait, nil) }, 30 * time.Second, 33 * time.Second},
		{"it grants no more", func(c net.Conn, q []byte) {
			go io.Copy(io.Discard, c)
			s := answer(q).frame(frameCredit, 0, credit)
			c.Write(s.b)
			s.sendOn(c, frameWait, nil)
		}, 30 * time.Second, 33 * time.Second},
		{"it takes nothing", func(c net.Conn, q []byte) {
			s := answer(q).frame(frameCredit, 0, credit)
			c.Write(s.b)
			s.sendOn(c, frameWait, nil)
		}, 30 * time.Second, 33 * time.Second},
		{"it says nothing", func(c net.Conn, q []byte) {
			c.Write(answer(q).frame(frameCredit, 0, credit).b)
			io.Copy(io.Discard, c)
		}, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := wire.New(fake(t, test.reply), wire.Config{})
				defer wiretest.Close(t, c)
				begin := time.Now()
				var emitted atomic.Int64
				_, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, endless(5000, &emitted))
				if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took < test.min || took > test.max {
					t.Errorf("%v after %v, want %v after %v", err, took, meta.ErrUnavailable, test.min)
				}
				if n := c.Nodes()[0]; n.Failures != 1 || emitted.Load() > granted {
					t.Errorf("%d bytes were taken of the feed, %+v; want %d at most, and a failure of the node", emitted.Load(), n, granted)
				}
			})
		})
	}
	k := newKeeper()
	k.each = func(context.Context, int) error { time.Sleep(20 * time.Second); return nil }
	inBubble(t, k, wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		if err := p.push(t, of(1<<20)); err != nil {
			t.Errorf("a slow one: %v", err)
		}
	})
}

// A feed that stalls is given up, and not the other node; one that has something now and
// then is not.
func TestStalledFeed(t *testing.T) {
	inBubble(t, newKeeper(), wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
		begin := time.Now()
		err := p.push(t, func(ctx context.Context, emit func([]byte) error) error {
			for range 10 {
				if err := emit(pattern(8)); err != nil {
					return err
				}
				time.Sleep(29 * time.Second)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(begin) - 290*time.Second; !errors.Is(err, meta.ErrUnavailable) || took < 0 || took > 5*time.Second {
			t.Errorf("%v, %v after it had stalled for 30s, want %v", err, took, meta.ErrUnavailable)
		}
		if n := p.client.Nodes()[0]; n.Failures != 0 {
			t.Errorf("%+v, want the node well", n)
		}
		if end := <-p.ends; !errors.Is(end.err, meta.ErrUnavailable) || len(end.got) != 80 {
			t.Errorf("the other node has %d bytes, and is told %v", len(end.got), end.err)
		}
		p.wellAgain(t, 1)
	})
}

// Wherever a push is when it is given up, it ends then, on both sides.
func TestCancelPush(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range cancels() {
		after := time.Duration(random.IntN(160))*time.Millisecond + time.Microsecond
		k := newKeeper()
		pause := func(ctx context.Context, _ int) error {
			select {
			case <-time.After(10 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		k.each, k.then = pause, func(ctx context.Context, _ []byte) error { return pause(ctx, 0) }
		inBubble(t, k, wire.Limits{}, wire.Config{}, func(t *testing.T, p *pair) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			begin := time.Now()
			_, err := p.client.Push(ctx, "n", wire.Request{Call: callPush}, of(5*64<<10)) // seven pauses, and one more
			if (err == nil) != (time.Since(begin) < after) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v after %v", after, err, time.Since(begin))
			}
			time.Sleep(10 * time.Millisecond) // a pause between two reads goes on
			synctest.Wait()
			if n := p.server.Stats(); n.UnderWay != 0 || n.Queued != 0 || err != nil && n.Conns != 0 {
				t.Errorf("after %v: %+v, want nothing under way", after, n)
			}
			if end := <-p.ends; (end.err == nil) != (len(end.got) == 5*64<<10) && end.err == nil {
				t.Errorf("after %v: %d bytes are taken for whole", after, len(end.got))
			}
		})
	}
}

// A daemon that ends ends what it pushes, and what is pushed to it.
func TestClosePush(t *testing.T) {
	for _, there := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, dial := wiretest.Pipe(t)
			k := newKeeper()
			k.ends = make(chan ended, 1)
			_, stop := k.serve(t, l, wire.Limits{})
			defer stop()
			c := wire.New(dial, wire.Config{})
			defer wiretest.Close(t, c)
			failed := make(chan error)
			go func() {
				_, err := c.Push(context.Background(), "n", wire.Request{Call: callPush}, func(ctx context.Context, emit func([]byte) error) error {
					if err := emit(pattern(100)); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				})
				failed <- err
			}()
			synctest.Wait()
			want := meta.ErrBusy
			if there {
				want = meta.ErrUnavailable
				stop()
			} else {
				go wiretest.Close(t, c)
			}
			begin := time.Now()
			if err := <-failed; !errors.Is(err, want) || time.Since(begin) != 0 {
				t.Errorf("%v after %v, want %v at once", err, time.Since(begin), want)
			}
			if end := <-k.ends; end.err == nil {
				t.Error("it is taken for whole")
			}
		})
	}
}

// A connection that ended while it was idle is replaced without a word.
func TestPushOnAnIdleConnectionThatEnded(t *testing.T) {
	l, dial := wiretest.TLS(t)
	k := newKeeper()
	_, stop := k.serve(t, l, wire.Limits{})
	now := dial
	c := newClient(t, func(ctx context.Context, n string) (net.Conn, error) { return now(ctx, n) }, wire.Config{})
	p := &pair{keeper: k, client: c}
	if err := p.push(t, of(1000)); err != nil {
		t.Fatal(err)
	}
	stop()
	l, now = wiretest.TLS(t)
	k.serve(t, l, wire.Limits{})
	p.wellAgain(t, 2)
}
