package wire_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// Whatever is sent to a server, it hangs up, and soon.
func TestHostileRequests(t *testing.T) {
	s := &store{Mean: 100}
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
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dial := wiretest.Pipe(t)
				server, stop := serve(t, l, s, wire.Limits{})
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
