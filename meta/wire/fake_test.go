package wire_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// reply is what one connection's server answers to a request; all that is
// needed of a server to play a bad one.
type reply func(c net.Conn, request []byte)

// fake is a node with such a server. The request that reply gets is as it
// came, runs and all. Connections stay open until the test ends.
func fake(t *testing.T, r reply) wire.Dial {
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
	frameCredit
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
func ask(t *testing.T, r reply, n int) (got []byte, stats wire.ClientStats, err error) {
	t.Helper()
	c := wire.New(fake(t, r), wire.Config{})
	defer wiretest.Close(t, c)
	got = make([]byte, n)
	err = get(t.Context(), c, 0, []wire.Run{{First: 1, N: 2}}, [][]byte{got})
	return got, c.Stats(), err
}

// recorded is what a client sends to ask for a record.
func recorded(t *testing.T, s *store) []byte {
	t.Helper()
	asked := make(chan []byte, 1)
	c := wire.New(fake(t, func(c net.Conn, q []byte) {
		asked <- q
		c.Close()
	}), wire.Config{})
	defer wiretest.Close(t, c)
	get(t.Context(), c, 0, []wire.Run{{First: 1, N: 2}}, [][]byte{make([]byte, len(s.Want([]wire.Run{{First: 1, N: 2}})))})
	return <-asked
}
