package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
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
		{call: 3, body: true, count: MaxBody},
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
		if q.encode() != raw || q.count > MaxRuns || q.body && (q.count > MaxBody || q.count == 0) || q.bytes > maxBytes {
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

// Whatever is answered, also to a push, ends in an error, or in all the bytes. The sums
// of the heads are made right, so that something is behind them.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, kindData, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, kindEnd, 0, 0, 0}, 3, -1)
	f.Add([]byte{0, 0, 0, 0, kindWait, 0, 0, 0, 2, 0, 0, 0, kindFail, 0, 0, 0, 'n', 'o', 0, 0, 0, 0, kindEnd, 0, 0, 0}, 3, -1)
	f.Add([]byte{255, 255, 255, 255, kindData, 0, 0, 0}, 1<<20, -1)
	f.Add([]byte{8, 0, 0, 0, kindSize, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 0, -1)
	credit := []byte{8, 0, 0, 0, kindCredit, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}
	f.Add(append(bytes.Clone(credit), 0, 0, 0, 0, kindEnd, 0, 0, 0), 0, 5)
	f.Add(append(bytes.Repeat(credit, 3), 2, 0, 0, 0, kindFail, 0, 0, 0, 'n', 'o', 0, 0, 0, 0, kindEnd, 0, 0, 0), 0, 1<<20)
	f.Add([]byte{8, 0, 0, 0, kindCredit, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255}, 0, 1)
	f.Fuzz(func(t *testing.T, b []byte, n, pushed int) {
		if n < 0 || n > 4<<20 || pushed > 4<<20 {
			return
		}
		dst := make([]byte, n)
		here, there := net.Pipe()
		defer here.Close()
		var all sync.WaitGroup
		all.Go(func() {
			defer there.Close()
			var request [requestSize]byte
			if _, err := io.ReadFull(there, request[:]); err != nil {
				t.Error(err)
				return
			}
			all.Go(func() { _, _ = io.Copy(io.Discard, there) })
			_, _ = there.Write(summed(b, request[:]))
		})
		l := newLink(here, patience{frame: 1 << 40, take: 1 << 40, beat: 1 << 40, nothing: 1 << 40}, newScratch())
		x := &exchange{to: NewScatter([][]byte{dst[:n/2], dst[n/2:]})}
		if pushed >= 0 {
			x.feed = From(io.LimitReader(zeros{}, int64(pushed)))
		}
		ready, err := l.exchange(context.Background(), x)
		here.Close()
		all.Wait()
		if err == nil && (int(l.in.in) < n+headSize || !ready) {
			t.Errorf("%d bytes were answered by %d", n, l.in.in)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Whatever is pushed, what is read of it is what its frames say up to the first that is
// wrong, and it is a success only with an end.
func FuzzStream(f *testing.F) {
	end := []byte{0, 0, 0, 0, kindEnd, 0, 0, 0}
	data := []byte{3, 0, 0, 0, kindData, 0, 0, 0, 'a', 'b', 'c'}
	f.Add(bytes.Join([][]byte{data, {0, 0, 0, 0, kindWait, 0, 0, 0}, data, end}, nil), uint16(1))
	f.Add(append([]byte{2, 0, 0, 0, kindFail, 0, 0, 0, 'n', 'o'}, end...), uint16(3))
	f.Add(bytes.Join([][]byte{data, end, data}, nil), uint16(9))
	f.Add([]byte{0, 0, 16, 0, kindData, 0, 0, 0, 'a'}, uint16(100))
	f.Add([]byte{8, 0, 0, 0, kindCredit, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, room uint16) {
		const granted = 1 << 17
		want, whole := streamed(b, granted)
		var got []byte
		read := make(chan error, 1)
		server, err := NewServer(Limits{}, Pushes{1: func(_ context.Context, _ Request, in *Stream) ([]byte, error) {
			err := in.Grant(granted)
			for p := make([]byte, 1+int(room)); err == nil; {
				var n int
				if uint64(len(p)) > in.granted-in.read {
					p = p[:max(1, in.granted-in.read)] // no more is granted, but for the end
				}
				n, err = in.Read(p)
				got = append(got, p[:n]...)
			}
			read <- err
			if err == io.EOF {
				return nil, nil
			}
			return nil, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		var all sync.WaitGroup
		all.Go(func() { server.attend(context.Background(), there) })
		request := header{call: 1, seq: 1}.encode()
		if _, err := here.Write(request[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(here, make([]byte, headSize+8)); err != nil { // the grant
			t.Fatal(err)
		}
		all.Go(func() { _, _ = io.Copy(io.Discard, here) })
		_, _ = here.Write(summed(b, request[:]))
		here.Close()
		all.Wait()
		if err := <-read; (err == io.EOF) != whole {
			t.Errorf("%v, whole %v", err, whole)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
	})
}

// streamed is what a stream of frames without their sums brings, of no more than granted
// bytes, and whether it comes to a good end.
func streamed(b []byte, granted int) (data []byte, whole bool) {
	for len(b) >= 8 {
		h := head{length: binary.LittleEndian.Uint32(b), kind: b[4]}
		if !h.possible() || b[5]|b[6]|b[7] != 0 {
			return data, false
		}
		b = b[8:]
		n := min(int(h.length), len(b))
		switch h.kind {
		case kindEnd:
			return data, true
		case kindData:
			if len(data)+int(h.length) > granted {
				return data, false
			}
			data = append(data, b[:n]...)
		case kindWait:
		default:
			return data, false
		}
		b = b[n:]
	}
	return data, false
}

// summed puts into a stream of frames the sums that it lacks, of one that a request began.
func summed(b, request []byte) (out []byte) {
	var sum xxhash.Digest
	greet(&sum, request, nil)
	for len(b) >= 8 {
		var head [headSize]byte
		copy(head[:], b[:8])
		_, _ = sum.Write(head[:8])
		binary.LittleEndian.PutUint64(head[8:], sum.Sum64())
		n := min(len(b)-8, int(binary.LittleEndian.Uint32(b)))
		_, _ = sum.Write(b[8 : 8+n])
		out = append(append(out, head[:]...), b[8:8+n]...)
		b = b[8+n:]
	}
	return out
}
