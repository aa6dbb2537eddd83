package wire_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

const (
	total = 256 << 20
	batch = 8 << 20
)

// A slab is a mapped file of records that are equally long.
type slab struct {
	mem    []byte
	record int
}

func newSlab(b *testing.B, record int) *slab {
	f, err := os.CreateTemp("/dev/shm", "peers-")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	os.Remove(f.Name())
	if err := f.Truncate(total); err != nil {
		b.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Munmap(mem) })
	for i := 0; i < total; i += 8 {
		binary.LittleEndian.PutUint64(mem[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return &slab{mem, record}
}

func (s *slab) Gather(_ context.Context, _ [32]byte, runs []wire.Run, emit func([]byte) error) error {
	for _, r := range runs {
		for i := r.First; i < r.First+r.N; i++ {
			if err := emit(s.mem[int(i)*s.record:][:s.record]); err != nil {
				return err
			}
		}
	}
	return nil
}

// batches calls get for every batch of the slab: its records stand apart, and
// go to where they belong in dst.
func (s *slab) batches(get func(runs []wire.Run, dst [][]byte) error) error {
	dst := make([]byte, batch)
	count, each := total/s.record, batch/s.record
	for at := 0; at+each <= count; at += each {
		runs := make([]wire.Run, each)
		parts := make([][]byte, each)
		for i := range runs {
			runs[i] = wire.Run{First: uint64((at + i) * 7919 % count), N: 1}
			parts[i] = dst[i*s.record:][:s.record]
		}
		if err := get(runs, parts); err != nil {
			return err
		}
	}
	return nil
}

var sizes = []int{4 << 10, 110 << 10, 8 << 20}

// measure reports the processor time of both sides together.
func measure(b *testing.B, f func() error) {
	before := processor()
	b.SetBytes(total)
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processor()-before)/float64(b.N)*(1<<30)/total, "cpu-s/GiB")
}

func processor() float64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it cannot fail
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkPull(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("record=%dKiB", size>>10), func(b *testing.B) {
			s := newSlab(b, size)
			l, dial := wiretest.TLS(b)
			serve(b, l, s, wire.Limits{})
			c := newClient(b, dial, wire.Config{})
			b.ReportAllocs()
			measure(b, func() error {
				return s.batches(func(runs []wire.Run, dst [][]byte) error {
					return get(b.Context(), c, 0, runs, dst)
				})
			})
		})
	}
}

// BenchmarkPush sends all of the slab, as a file that is in memory.
func BenchmarkPush(b *testing.B) {
	s := newSlab(b, batch)
	l, dial := wiretest.TLS(b)
	wiretest.Serve(b, l, nil, wire.Pushes{callPush: func(_ context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
		p := make([]byte, 1<<20)
		for n := 4 << 20; ; {
			if err := in.Grant(uint64(n)); err != nil {
				return nil, err
			}
			var err error
			if n, err = in.Read(p); err == io.EOF {
				return nil, nil
			} else if err != nil {
				return nil, err
			}
		}
	}}, wire.Limits{})
	c := newClient(b, dial, wire.Config{})
	b.ReportAllocs()
	measure(b, func() error {
		_, err := c.Push(b.Context(), "n", wire.Request{Call: callPush, Bytes: total}, func(_ context.Context, emit func([]byte) error) error {
			return emit(s.mem)
		})
		return err
	})
}

// BenchmarkHTTP is BenchmarkPull by net/http, without checksums. What it is told to
// send stands in a variable.
func BenchmarkHTTP(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("record=%dKiB", size>>10), func(b *testing.B) {
			s := newSlab(b, size)
			l, dial := wiretest.TLS(b)
			asked := make(chan []wire.Run, 1)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				to := bufio.NewWriterSize(w, 64<<10)
				s.Gather(r.Context(), dataset, <-asked, func(p []byte) error {
					_, err := to.Write(p)
					return err
				})
				to.Flush()
			})}
			go server.Serve(l)
			defer server.Close()
			transport := &http.Transport{ReadBufferSize: 64 << 10, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, "n") }}
			defer transport.CloseIdleConnections()
			measure(b, func() error {
				return s.batches(func(runs []wire.Run, dst [][]byte) error {
					asked <- runs
					return fetch(transport, dst)
				})
			})
		})
	}
}

func fetch(transport *http.Transport, dst [][]byte) error {
	r, err := http.NewRequest("GET", "https://node/", nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for _, p := range dst {
		if _, err := io.ReadFull(answer.Body, p); err != nil {
			return err
		}
	}
	if n, err := io.Copy(io.Discard, answer.Body); n > 0 || err != nil {
		return errors.Join(err, fmt.Errorf("%d bytes too many", n))
	}
	return nil
}
