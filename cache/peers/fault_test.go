package peers_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/cache/peers"
	"rankfs/meta"
)

// reply is what one connection's server answers to a request; all that is
// needed of a server to play a bad one.
type reply func(c net.Conn, request []byte)

// fake is a node with such a server. The request that reply gets is as it
// came, runs and all. Connections stay open until the test ends.
func fake(t *testing.T, r reply) peers.Dial {
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return func(context.Context, string) (net.Conn, error) {
		here, there := net.Pipe()
		mu.Lock()
		conns = append(conns, there)
		mu.Unlock()
		all.Go(func() {
			for {
				b := make([]byte, 64)
				if _, err := io.ReadFull(there, b); err != nil {
					return
				}
				if n := binary.LittleEndian.Uint32(b[4:]); n > 0 {
					b = append(b, make([]byte, 16*n+8)...)
					if _, err := io.ReadFull(there, b[64:]); err != nil {
						return
					}
				}
				r(there, b)
			}
		})
		return here, nil
	}
}

// A stream builds an answer, right sums and all.
type stream struct {
	sum *xxhash.Digest
	b   []byte
	at  []int // where each frame begins
}

const (
	frameData = 1 + iota
	frameSize
	frameWait
	frameFail
	frameEnd
)

func answer(request []byte) *stream {
	s := &stream{sum: xxhash.New()}
	s.sum.Write(request[:64])
	if len(request) > 64 {
		s.sum.Write(request[len(request)-8:])
	}
	return s
}

func (s *stream) frame(kind, spare byte, p []byte) *stream {
	return s.head(uint32(len(p)), kind, spare, p)
}

func (s *stream) head(length uint32, kind, spare byte, p []byte) *stream {
	s.at = append(s.at, len(s.b))
	h := binary.LittleEndian.AppendUint32(nil, length)
	h = append(h, kind, spare, 0, 0)
	s.sum.Write(h)
	s.b = append(s.b, h...)
	s.b = binary.LittleEndian.AppendUint64(s.b, s.sum.Sum64())
	s.sum.Write(p)
	s.b = append(s.b, p...)
	return s
}

// good is an answer of n bytes in three frames, the third of them sent after
// a sign of life.
func good(request []byte, n int) *stream {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i)
	}
	return answer(request).frame(frameData, 0, p[:n/2]).frame(frameData, 0, p[n/2:n-1]).frame(frameWait, 0, nil).
		frame(frameData, 0, p[n-1:]).frame(frameEnd, 0, nil)
}

// ask gathers n bytes of a fake node once.
func ask(t *testing.T, r reply, n int) (got []byte, stats peers.ClientStats, err error) {
	t.Helper()
	c := peers.New(fake(t, r), peers.Config{})
	defer closeClient(t, c)
	got = make([]byte, n)
	err = c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: []peers.Run{{First: 1, N: 2}}}, [][]byte{got})
	return got, c.Stats(), err
}

func TestGoodAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, _, err := ask(t, func(c net.Conn, q []byte) { c.Write(good(q, 100).b) }, 100)
		if err != nil || got[99] != 99 {
			t.Fatalf("%v, last byte %d", err, got[99])
		}
	})
}

// No bit of an answer can be flipped: each comes to a wrong sum.
func TestFlippedBits(t *testing.T) {
	const n = 40
	length := len(good(make([]byte, 64), n).b)
	for bit := range length * 8 {
		synctest.Test(t, func(t *testing.T) {
			_, stats, err := ask(t, func(c net.Conn, q []byte) {
				s := good(q, n)
				s.b[bit/8] ^= 1 << (bit % 8)
				c.Write(s.b)
			}, n)
			if !errors.Is(err, meta.ErrCorrupt) || stats.CorruptStreams != 1 {
				t.Errorf("bit %d of byte %d: %v, want %v, counted", bit%8, bit/8, err, meta.ErrCorrupt)
			}
		})
	}
}

func TestCorruptAnswers(t *testing.T) {
	const n = 100
	cut := func(s *stream, from, to int) []byte { return s.b[s.at[from]:s.at[to]] }
	for _, test := range []struct {
		name string
		make func(q []byte) []byte
	}{
		{"a frame lost", func(q []byte) []byte {
			s := good(q, n)
			return append(cut(s, 0, 1), s.b[s.at[2]:]...)
		}},
		{"a sign of life lost", func(q []byte) []byte {
			s := good(q, n)
			return append(cut(s, 0, 2), s.b[s.at[3]:]...)
		}},
		{"a frame doubled", func(q []byte) []byte {
			s := good(q, n)
			return append(bytes.Clone(cut(s, 0, 1)), s.b...)
		}},
		{"frames swapped", func(q []byte) []byte {
			s := good(q, n)
			return bytes.Join([][]byte{cut(s, 1, 2), cut(s, 0, 1), s.b[s.at[2]:]}, nil)
		}},
		{"of another request", func(q []byte) []byte {
			other := bytes.Clone(q)
			other[12]++ // which request of the connection it is
			return good(other, n).b
		}},
		{"of other runs", func(q []byte) []byte {
			other := bytes.Clone(q)
			other[len(other)-1]++
			return good(other, n).b
		}},
		{"a frame of 4 GiB", func(q []byte) []byte {
			return answer(q).head(1<<32-1, frameData, 0, nil).b
		}},
		{"a frame over 1 MiB", func(q []byte) []byte {
			return answer(q).head(1<<20+1, frameData, 0, nil).b
		}},
		{"a frame of nothing", func(q []byte) []byte {
			return answer(q).frame(frameData, 0, nil).b
		}},
		{"a kind that is none", func(q []byte) []byte {
			return answer(q).frame(9, 0, nil).b
		}},
		{"a head with something to spare", func(q []byte) []byte {
			return answer(q).frame(frameWait, 1, nil).b
		}},
		{"an error of 2 KiB", func(q []byte) []byte {
			return answer(q).head(2<<10, frameFail, 0, nil).b
		}},
		{"more than was asked for", func(q []byte) []byte {
			return answer(q).frame(frameData, 0, make([]byte, n+1)).frame(frameEnd, 0, nil).b
		}},
		{"less than was asked for", func(q []byte) []byte {
			return answer(q).frame(frameData, 0, make([]byte, n-1)).frame(frameEnd, 0, nil).b
		}},
		{"nothing of it", func(q []byte) []byte {
			return answer(q).frame(frameEnd, 0, nil).b
		}},
		{"data after an error", func(q []byte) []byte {
			return answer(q).frame(frameFail, 0, []byte("invalid no")).frame(frameData, 0, make([]byte, n)).frame(frameEnd, 0, nil).b
		}},
		{"a file", func(q []byte) []byte {
			return answer(q).frame(frameSize, 0, make([]byte, 8)).frame(frameEnd, 0, nil).b
		}},
		{"HTTP", func(q []byte) []byte {
			return []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, stats, err := ask(t, func(c net.Conn, q []byte) { c.Write(test.make(q)) }, n)
				if !errors.Is(err, meta.ErrCorrupt) || stats.CorruptStreams != 1 || stats.Corrupt != 1 {
					t.Errorf("%v, want %v, counted", err, meta.ErrCorrupt)
				}
			})
		})
	}
}

// Wherever an answer ends, or hangs, it is an error, and after how long is
// known.
func TestCutAnswers(t *testing.T) {
	const n = 30
	length := len(good(make([]byte, 64), n).b)
	for at := range length {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := ask(t, func(c net.Conn, q []byte) {
				c.Write(good(q, n).b[:at])
				c.Close()
			}, n)
			if !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("cut at %d: %v, want %v", at, err, meta.ErrUnavailable)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			_, _, err := ask(t, func(c net.Conn, q []byte) { c.Write(good(q, n).b[:at]) }, n)
			if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took != 10*time.Second {
				t.Errorf("hung at %d: %v after %v, want %v after 10s", at, err, took, meta.ErrUnavailable)
			}
		})
	}
}

// A node that says that it is at work is believed for long, but not for ever.
func TestNoDataForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, _, err := ask(t, func(c net.Conn, q []byte) {
			s := answer(q)
			for range 100 {
				time.Sleep(3 * time.Second)
				if _, err := c.Write(s.frame(frameWait, 0, nil).b[s.at[len(s.at)-1]:]); err != nil {
					return
				}
			}
		}, 10)
		if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took < 30*time.Second || took > 35*time.Second {
			t.Errorf("%v after %v, want %v after 30s", err, took, meta.ErrUnavailable)
		}
	})
}

// Bytes one by one are not worth waiting for.
func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		begin := time.Now()
		_, _, err := ask(t, func(c net.Conn, q []byte) {
			for _, b := range good(q, n).b {
				time.Sleep(time.Second)
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		}, n)
		if took := time.Since(begin); !errors.Is(err, meta.ErrUnavailable) || took > time.Minute {
			t.Errorf("%v after %v, want %v within a minute", err, took, meta.ErrUnavailable)
		}
	})
}

// A server whose store is slow says so, and is waited for.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{mean: 1000}
		s.before = func(context.Context) error { time.Sleep(14 * time.Second); return nil }
		l, dial := listenPipe(t)
		_, stop := serve(t, l, s, peers.Limits{})
		defer stop()
		c := peers.New(dial, peers.Config{})
		defer closeClient(t, c)
		gather(t, c, s, []peers.Run{{First: 1, N: 5}}, 1000)
	})
}

// A store that hangs is given up on both sides.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{mean: 1000}
		left := make(chan error, 1)
		s.before = func(ctx context.Context) error {
			<-ctx.Done()
			left <- context.Cause(ctx)
			return ctx.Err()
		}
		l, dial := listenPipe(t)
		_, stop := serve(t, l, s, peers.Limits{Store: 20 * time.Second})
		defer stop()
		c := peers.New(dial, peers.Config{})
		defer closeClient(t, c)
		err := c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: []peers.Run{{First: 1, N: 1}}}, [][]byte{make([]byte, s.length(1))})
		if !errors.Is(err, meta.ErrUnavailable) || c.Stats().Dials != 1 {
			t.Errorf("%v, want %v", err, meta.ErrUnavailable)
		}
		if err := <-left; !errors.Is(err, meta.ErrUnavailable) {
			t.Errorf("the store was stopped because of %v", err)
		}
	})
}

// Who takes nothing is dropped after half a minute.
func TestReaderTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{mean: 1 << 20}
		l, dial := listenPipe(t)
		server, stop := serve(t, l, s, peers.Limits{})
		defer stop()
		c, err := dial(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		begin := time.Now()
		c.Write(recorded(t, s))
		for server.Stats().Conns > 0 {
			time.Sleep(time.Second)
		}
		if n := server.Stats(); time.Since(begin) > 31*time.Second || n.Slow != 1 {
			t.Errorf("dropped after %v, %+v; want 30s", time.Since(begin), n)
		}
	})
}

// recorded is what a client sends to ask for a record.
func recorded(t *testing.T, s *store) []byte {
	t.Helper()
	asked := make(chan []byte, 1)
	c := peers.New(fake(t, func(c net.Conn, q []byte) {
		asked <- q
		c.Close()
	}), peers.Config{})
	defer closeClient(t, c)
	c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: []peers.Run{{First: 1, N: 2}}}, [][]byte{make([]byte, len(s.want([]peers.Run{{First: 1, N: 2}})))})
	return <-asked
}

// Whatever is sent to a server, it hangs up, and soon.
func TestHostileRequests(t *testing.T) {
	s := &store{mean: 100}
	for _, test := range []struct {
		name string
		make func(q []byte) []byte
	}{
		{"nothing", func(q []byte) []byte { return nil }},
		{"half a request", func(q []byte) []byte { return q[:30] }},
		{"no runs", func(q []byte) []byte { return q[:64] }},
		{"half the runs", func(q []byte) []byte { return q[:80] }},
		{"HTTP", func(q []byte) []byte {
			return []byte("GET / HTTP/1.1\r\nHost: node\r\nUser-Agent: something\r\nAccept: */*\r\n\r\n")
		}},
		{"a bit flipped", func(q []byte) []byte { q[20] ^= 1; return q }},
		{"a bit of the runs flipped", func(q []byte) []byte { q[70] ^= 1; return q }},
		{"4 billion runs", func(q []byte) []byte {
			binary.LittleEndian.PutUint32(q[4:], 1<<32-1)
			binary.LittleEndian.PutUint64(q[56:], xxhash.Sum64(q[:56]))
			return q
		}},
		{"something unknown", func(q []byte) []byte {
			q[2] = 77
			binary.LittleEndian.PutUint64(q[56:], xxhash.Sum64(q[:56]))
			return q
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dial := listenPipe(t)
				server, stop := serve(t, l, s, peers.Limits{})
				defer stop()
				c, err := dial(t.Context(), "n")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				begin := time.Now()
				c.Write(test.make(recorded(t, s)))
				if n, err := c.Read(make([]byte, 1)); err == nil {
					t.Errorf("it answers %d bytes", n)
				}
				if took := time.Since(begin); took > 2*time.Minute {
					t.Errorf("it hung up after %v", took)
				}
				stop()
				if n := server.Stats(); n.Failed != 0 || n.BytesOut != 0 {
					t.Errorf("%+v, want nothing sent", n)
				}
			})
		})
	}
}

// A server that ends in mid-stream is an error, and the next one is found.
func TestServerDies(t *testing.T) {
	for _, w := range wires[1:] {
		t.Run(w.name, func(t *testing.T) {
			s := &store{mean: 50_000}
			l, dial := w.listen(t)
			reached := make(chan struct{}, 1000)
			s.before = func(ctx context.Context) error {
				reached <- struct{}{}
				if len(reached) > 20 {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			_, stop := serve(t, l, s, peers.Limits{})
			now := dial
			c := newClient(t, func(ctx context.Context, n string) (net.Conn, error) { return now(ctx, n) }, peers.Config{})
			runs := []peers.Run{{First: 0, N: 200}}
			failed := make(chan error, 1)
			go func() {
				failed <- c.Gather(t.Context(), "n", peers.Want{Dataset: dataset, Runs: runs}, [][]byte{make([]byte, len(s.want(runs)))})
			}()
			for len(reached) <= 20 {
				<-time.After(time.Millisecond)
			}
			stop()
			if err := <-failed; !errors.Is(err, meta.ErrUnavailable) {
				t.Errorf("%v, want %v", err, meta.ErrUnavailable)
			}
			s.before = nil
			l, now = w.listen(t)
			serve(t, l, s, peers.Limits{})
			gather(t, c, s, runs, 10_000)
		})
	}
}

// A connection that ended while it was idle is replaced without a word.
func TestIdleConnectionEnds(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			s := &store{mean: 50_000}
			l, dial := w.listen(t)
			_, stop := serve(t, l, s, peers.Limits{})
			now := dial
			c := newClient(t, func(ctx context.Context, n string) (net.Conn, error) { return now(ctx, n) }, peers.Config{})
			runs := []peers.Run{{First: 0, N: 20}}
			gather(t, c, s, runs, 10_000)
			stop()
			l, now = w.listen(t)
			serve(t, l, s, peers.Limits{})
			gather(t, c, s, runs, 10_000)
			if n := c.Stats(); n.Dials != 2 || n.Unavailable != 0 || n.Conns != 1 {
				t.Errorf("%+v, want two connections made, and one left", n)
			}
		})
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{mean: 100}
		l, dial := listenPipe(t)
		server, stop := serve(t, l, s, peers.Limits{})
		defer stop()
		c := peers.New(dial, peers.Config{})
		defer closeClient(t, c)
		gather(t, c, s, []peers.Run{{First: 0, N: 20}}, 100)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := c.Stats(); n.Conns != 1 {
			t.Fatalf("%d connections after 29s, want 1", n.Conns)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, m := c.Stats(), server.Stats(); n.Conns != 0 || m.Conns != 0 {
			t.Fatalf("%d connections after 31s, %d of the server, want none", n.Conns, m.Conns)
		}
	})
}
