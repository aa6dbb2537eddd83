package wire

import (
	"bytes"
	"net"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// Whatever is decoded is what its bytes say, and within the bounds.
func FuzzHeader(f *testing.F) {
	for _, q := range []header{
		{call: 1, count: 1, bytes: 5, seq: 1},
		{call: 1, count: MaxRuns, bytes: maxBytes, wait: 1 << 30, id: [32]byte{1}},
		{call: 1, count: 2, bytes: 6, kept: true},
		{call: 2, id: [32]byte{9}},
		{call: 7, count: 1 << 31, bytes: 1 << 63},
	} {
		b := q.encode()
		f.Add(b[:56])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) != 56 {
			return
		}
		// Or hardly anything would get past the checksum.
		raw := [requestSize]byte(append(bytes.Clone(body), sumOf(body)...))
		q, err := decodeHeader(raw)
		if err != nil {
			return
		}
		if q.encode() != raw || q.count > MaxRuns || q.bytes > maxBytes {
			t.Errorf("%+v from %x", q, raw)
		}
	})
}

func sumOf(b []byte) []byte {
	d := xxhash.New()
	_, _ = d.Write(b)
	s := d.Sum64()
	return []byte{byte(s), byte(s >> 8), byte(s >> 16), byte(s >> 24), byte(s >> 32), byte(s >> 40), byte(s >> 48), byte(s >> 56)}
}

// Runs are read back as they were sent, and nothing else is taken for runs.
func FuzzRuns(f *testing.F) {
	f.Add([]byte{}, 0)
	f.Add(make([]byte, 64), 3)
	f.Add(bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 5000), 7)
	f.Fuzz(func(t *testing.T, b []byte, flip int) {
		count := len(b) / runSize
		b = b[:count*runSize]
		sent := append(bytes.Clone(b), sumOf(b)...)
		runs, _, err := readRuns(bytes.NewReader(sent), count, make([]Run, 0, count))
		if err != nil || len(runs) != count {
			t.Fatalf("%d of %d runs: %v", len(runs), count, err)
		}
		var again bytes.Buffer
		if _, err := sendRuns(&again, make([]byte, 0, 64), runs); err != nil || !bytes.Equal(again.Bytes(), sent) {
			t.Errorf("sent again they are %x, not %x", again.Bytes(), sent)
		}
		if checkRuns(runs) == nil {
			total := uint64(0)
			for _, r := range runs {
				if total += r.N; r.N == 0 || r.First+r.N < r.First || total < r.N {
					t.Errorf("run %+v", r)
				}
			}
		}
		sent[uint(flip)%uint(len(sent))] ^= 1
		if _, _, err := readRuns(bytes.NewReader(sent), count, nil); err == nil {
			t.Error("a flipped bit was not found")
		}
	})
}

// Whatever is answered ends in an error, or in all the bytes. The sums of the
// heads are made right, so that something is behind them.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, kindData, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, kindEnd, 0, 0, 0}, 3)
	f.Add([]byte{0, 0, 0, 0, kindWait, 0, 0, 0, 2, 0, 0, 0, kindFail, 0, 0, 0, 'n', 'o', 0, 0, 0, 0, kindEnd, 0, 0, 0}, 3)
	f.Add([]byte{255, 255, 255, 255, kindData, 0, 0, 0}, 1<<20)
	f.Add([]byte{8, 0, 0, 0, kindSize, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 0)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 4<<20 {
			return
		}
		dst := make([]byte, n)
		here, there := net.Pipe()
		defer here.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer there.Close()
			_, _ = there.Write(summed(b))
		}()
		l := newLink(here)
		l.in.sum.Reset()
		err := l.answer(NewScatter([][]byte{dst[:n/2], dst[n/2:]}), patience{step: 1 << 40, nothing: 1 << 40})
		here.Close()
		<-done
		if err == nil && int(l.in.in) < n+headSize {
			t.Errorf("%d bytes were answered by %d", n, l.in.in)
		}
	})
}

// summed puts into a stream of frames the sums that it lacks.
func summed(b []byte) (out []byte) {
	var sum xxhash.Digest
	sum.Reset()
	for len(b) >= 8 {
		var head [headSize]byte
		copy(head[:], b[:8])
		_, _ = sum.Write(head[:8])
		for i, s := 0, sum.Sum64(); i < 8; i++ {
			head[8+i] = byte(s >> (8 * i))
		}
		n := min(len(b)-8, int(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
		_, _ = sum.Write(b[8 : 8+n])
		out = append(append(out, head[:]...), b[8:8+n]...)
		b = b[8+n:]
	}
	return out
}
