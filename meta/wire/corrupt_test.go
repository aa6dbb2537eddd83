package wire_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"rankfs/meta"
)

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
