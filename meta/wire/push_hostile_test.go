package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// pushed is what a client sends to push n bytes, any number for 0.
func pushed(t *testing.T, n uint64) []byte {
	t.Helper()
	asked := make(chan []byte, 1)
	c := wire.New(fake(t, func(c net.Conn, q []byte) {
		asked <- q
		c.Close()
	}), wire.Config{})
	defer wiretest.Close(t, c)
	c.Push(t.Context(), "n", wire.Request{Call: callPush, Bytes: n}, of(0))
	return <-asked
}

// begun has a keeper take a push of n bytes, any number for 0, that a test goes on with by
// itself, by frames of s. The keeper has granted something then, or waits.
func (k *keeper) begun(t *testing.T, n uint64) (server *wire.Server, c net.Conn, s *stream) {
	t.Helper()
	l, dial := wiretest.Pipe(t)
	k.ends = make(chan ended, 1)
	server, stop := k.serve(t, l, wire.Limits{})
	t.Cleanup(stop)
	c, err := dial(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	q := pushed(t, n)
	c.Write(q)
	synctest.Wait()
	return server, c, answer(q)
}

// sendOn sends a frame every three seconds, until the other side hangs up.
func (s *stream) sendOn(c net.Conn, kind byte, b []byte) {
	for range 100 {
		time.Sleep(3 * time.Second)
		if _, err := c.Write(s.frame(kind, 0, b).b[s.at[len(s.at)-1]:]); err != nil {
			return
		}
	}
}

// Whatever is sent to one who takes a push, it comes to no good end there, and soon.
func TestHostilePushes(t *testing.T) {
	some := pattern(100)
	for _, test := range []struct {
		name string
		said uint64
		make func(s *stream) []byte
		want error
		goes bool // the connection goes on
	}{
		{"whole, but longer than was said", 99, func(s *stream) []byte { return s.frame(frameData, 0, some).frame(frameEnd, 0, nil).b }, meta.ErrCorrupt, false},
		{"whole, but shorter than was said", 101, func(s *stream) []byte { return s.frame(frameData, 0, some).frame(frameEnd, 0, nil).b }, meta.ErrCorrupt, true},
		{"more than was granted", 0, func(s *stream) []byte { return s.frame(frameData, 0, make([]byte, 1001)).frame(frameEnd, 0, nil).b }, meta.ErrCorrupt, false},
		{"more than was granted, in pieces", 0, func(s *stream) []byte {
			return s.frame(frameData, 0, make([]byte, 600)).frame(frameData, 0, make([]byte, 1001)).b
		}, meta.ErrCorrupt, false},
		{"a size", 0, func(s *stream) []byte { return s.frame(frameSize, 0, make([]byte, 8)).b }, meta.ErrCorrupt, false},
		{"a grant", 0, func(s *stream) []byte { return s.frame(frameCredit, 0, some[:8]).b }, meta.ErrCorrupt, false},
		{"a kind that is none", 0, func(s *stream) []byte { return s.frame(9, 0, nil).b }, meta.ErrCorrupt, false},
		{"a frame of nothing", 0, func(s *stream) []byte { return s.frame(frameData, 0, nil).b }, meta.ErrCorrupt, false},
		{"a frame of 4 GiB", 0, func(s *stream) []byte { return s.head(1<<32-1, frameData, 0, nil).b }, meta.ErrCorrupt, false},
		{"a head with something to spare", 0, func(s *stream) []byte { return s.frame(frameWait, 1, nil).b }, meta.ErrCorrupt, false},
		{"an error of 2 KiB", 0, func(s *stream) []byte { return s.head(2<<10, frameFail, 0, nil).b }, meta.ErrCorrupt, false},
		{"data after an error", 0, func(s *stream) []byte {
			return s.frame(frameFail, 0, []byte("invalid no")).frame(frameData, 0, some).frame(frameEnd, 0, nil).b
		}, meta.ErrCorrupt, false},
		{"an error", 0, func(s *stream) []byte { return s.frame(frameFail, 0, []byte("stale no")).frame(frameEnd, 0, nil).b }, meta.ErrStale, true},
		{"a frame lost", 0, func(s *stream) []byte {
			s.frame(frameData, 0, some).frame(frameData, 0, some).frame(frameEnd, 0, nil)
			return s.b[s.at[1]:]
		}, meta.ErrCorrupt, false},
		{"a frame doubled", 0, func(s *stream) []byte {
			s.frame(frameData, 0, some).frame(frameEnd, 0, nil)
			return append(bytes.Clone(s.b[:s.at[1]]), s.b...)
		}, meta.ErrCorrupt, false},
		{"of another request", 0, func(s *stream) []byte {
			return answer(make([]byte, 64)).frame(frameData, 0, some).frame(frameEnd, 0, nil).b
		}, meta.ErrCorrupt, false},
		{"HTTP", 0, func(*stream) []byte { return []byte("POST / HTTP/1.1\r\nHost: node\r\n\r\n") }, meta.ErrCorrupt, false},
		{"nothing", 0, func(*stream) []byte { return nil }, meta.ErrUnavailable, false},
		{"signs of life", 0, nil, meta.ErrUnavailable, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeeper()
				k.room = 1000
				begin := time.Now()
				server, c, s := k.begun(t, test.said)
				if _, err := io.ReadFull(c, make([]byte, 24)); err != nil { // the grant
					t.Fatal(err)
				}
				said := make(chan []byte)
				go func() {
					b, _ := io.ReadAll(c)
					said <- b
				}()
				if test.make != nil {
					c.Write(test.make(s))
				} else {
					s.sendOn(c, frameWait, nil)
				}
				if end := <-k.ends; !errors.Is(end.err, test.want) {
					t.Errorf("%v there, want %v", end.err, test.want)
				}
				synctest.Wait()
				if n := server.Stats().Conns; (n == 1) != test.goes {
					t.Errorf("%d connections, want it to go on %v", n, test.goes)
				}
				if took := time.Since(begin); took > 2*time.Minute {
					t.Errorf("it took %v", took)
				}
				c.Close()
				kind, _, _ := bytes.Cut((<-said), []byte(" "))
				if test.want == meta.ErrCorrupt && !bytes.HasSuffix(kind, []byte("corrupt")) {
					t.Errorf("it is not told that it is corrupt, but %q", kind)
				}
			})
		})
	}
}

// What comes before anything was granted, or after the end, ends the connection, and
// what was done for it.
func TestHostilePushesAtRest(t *testing.T) {
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			k := newKeeper()
			left := make(chan error, 1)
			wait := func(ctx context.Context) error {
				<-ctx.Done()
				left <- context.Cause(ctx)
				return ctx.Err()
			}
			if early {
				k.each = func(ctx context.Context, _ int) error { return wait(ctx) }
			} else {
				k.then = func(ctx context.Context, _ []byte) error { return wait(ctx) }
			}
			_, c, s := k.begun(t, 0)
			go io.Copy(io.Discard, c)
			if !early {
				c.Write(s.frame(frameEnd, 0, nil).b)
				synctest.Wait()
			}
			begin := time.Now()
			c.Write([]byte{1})
			if err := <-left; !errors.Is(err, meta.ErrInvalid) || time.Since(begin) != 0 {
				t.Errorf("before anything was granted %v: ended by %v after %v, want %v at once", early, err, time.Since(begin), meta.ErrInvalid)
			}
		})
	}
}

// One that does not end after it was answered is not waited for.
func TestPushThatDoesNotEnd(t *testing.T) {
	for _, data := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k := newKeeper()
			k.ahead, k.each = 1<<20, full
			server, c, s := k.begun(t, 0)
			go io.Copy(io.Discard, c)
			begin := time.Now()
			c.Write(s.frame(frameData, 0, make([]byte, 1000)).b)
			if data {
				s.sendOn(c, frameData, make([]byte, 10))
			} else {
				s.sendOn(c, frameWait, nil)
			}
			if took := time.Since(begin); server.Stats().Conns != 0 || took > time.Minute {
				t.Errorf("it is gone after %v: %+v", took, server.Stats())
			}
		})
	}
}

// Whatever answers a push, it comes to an error that says so.
func TestHostileAnswersToPushes(t *testing.T) {
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for _, test := range []struct {
		name string
		make func(s *stream) *stream
	}{
		{"a grant of nothing", func(s *stream) *stream { return s.frame(frameCredit, 0, number(0)) }},
		{"a grant of everything", func(s *stream) *stream { return s.frame(frameCredit, 0, number(1<<64-1)) }},
		{"grants that overflow", func(s *stream) *stream {
			return s.frame(frameCredit, 0, number(1<<40)).frame(frameCredit, 0, number(1<<40)).frame(frameCredit, 0, number(1<<40))
		}},
		{"a grant of 4 bytes", func(s *stream) *stream { return s.frame(frameCredit, 0, number(1)[:4]) }},
		{"a grant after an error", func(s *stream) *stream {
			return s.frame(frameFail, 0, []byte("invalid no")).frame(frameCredit, 0, number(1))
		}},
		{"a success before all was sent", func(s *stream) *stream { return s.frame(frameCredit, 0, number(10)).frame(frameEnd, 0, nil) }},
		{"a result of 2 KiB", func(s *stream) *stream { return s.frame(frameSize, 0, number(2<<10)) }},
		{"two results", func(s *stream) *stream { return s.frame(frameSize, 0, number(8)).frame(frameSize, 0, number(8)) }},
		{"a result that was not announced", func(s *stream) *stream { return s.frame(frameData, 0, number(8)) }},
		{"a longer result than was announced", func(s *stream) *stream { return s.frame(frameSize, 0, number(7)).frame(frameData, 0, number(8)) }},
		{"a shorter result", func(s *stream) *stream {
			return s.frame(frameSize, 0, number(9)).frame(frameData, 0, number(8)).frame(frameEnd, 0, nil)
		}},
		{"an error of 2 KiB", func(s *stream) *stream { return s.head(2<<10, frameFail, 0, nil) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var emitted atomic.Int64
				c := wire.New(fake(t, func(c net.Conn, q []byte) {
					go c.Write(test.make(answer(q)).b)
					io.Copy(io.Discard, c)
				}), wire.Config{})
				defer wiretest.Close(t, c)
				_, err := c.Push(t.Context(), "n", wire.Request{Call: callPush}, endless(1<<20, &emitted))
				if n := c.Stats(); !errors.Is(err, meta.ErrCorrupt) || n.CorruptStreams != 1 {
					t.Errorf("%v, want %v, counted", err, meta.ErrCorrupt)
				}
			})
		})
	}
}
