package datanode_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/fetch/hdfs/shortcircuit"
)

// refusing is the socket of a datanode that answers each question for a block's files so.
func refusing(t *testing.T, answer func() []byte) (path string) {
	t.Helper()
	// The folders above are looked at too, and all users may write in /tmp.
	dir, err := os.MkdirTemp("/run", "rankfs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listen, err := net.Listen("unix", filepath.Join(dir, "dn"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	go func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			c.Write(answer())
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	return listen.Addr().String()
}

// A place is a client of a datanode on this host, near, which passes the files of no block,
// and whose bytes cannot be read, and of another one, far.
type place struct {
	*datanode.Client
	t *testing.T

	mu    sync.Mutex
	asked []string // over TCP, in order
	gone  bool     // near does not listen
	token bool     // it is the token that near refuses
}

func newPlace(t *testing.T) *place {
	p := &place{t: t}
	files := shortcircuit.New(shortcircuit.Config{Path: refusing(t, p.refusal), BackOff: time.Hour})
	t.Cleanup(files.Close)
	p.Client = datanode.New(datanode.Config{User: "root", Host: "near", Files: files, BackOff: time.Hour, Dial: p.dial})
	return p
}

func (p *place) refusal() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token {
		return refusalFor(5, "another token")
	}
	return refusal("no such block")
}

func (p *place) dial(_ context.Context, _, addr string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, addr)
	switch {
	case addr == "far:1":
		return sends(answer(crc32c, 512, append(zeros(crc32c), last(1000)...)...), false), nil
	case p.gone:
		return nil, errors.New("near does not listen")
	}
	return sends(refusal("input/output error"), true), nil
}

// reads reads a block that has replicas on those datanodes, and returns who was asked.
func (p *place) reads(on ...string) (asked []string) {
	p.t.Helper()
	p.set(func() { p.asked = nil })
	s := p.Open(p.t.Context(), located(p.t, on...), 0, 1000)
	defer s.Close()
	if _, err := s.Read(make([]byte, 1000)); (err == nil) != slices.Contains(on, "far") {
		p.t.Fatalf("from %q: %v", on, err)
	}
	p.set(func() { asked = p.asked })
	return asked
}

func (p *place) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// A block whose files its datanode does not pass, and whose bytes it cannot read, says
// nothing of that datanode, however often it is asked for: others are read there.
func TestBlockThatIsNotRead(t *testing.T) {
	p := newPlace(t)
	for n := range 3 {
		if asked := p.reads("near", "far"); !slices.Equal(asked, []string{"near:1", "far:1"}) {
			t.Errorf("after %d reads %q are asked", n, asked)
		}
	}
	if s := p.Snapshot(); s.Streams != 0 || s.Failures != 3 {
		t.Errorf("the counters say %+v", s)
	}
}

// Nor does such a block have a datanode be asked again that has failed.
func TestBlockThatIsNotReadOfOneThatFailed(t *testing.T) {
	p := newPlace(t)
	p.set(func() { p.gone, p.token = true, true })
	p.reads("near", "far") // near has failed
	p.set(func() { p.token = false })
	if asked := p.reads("near"); !slices.Equal(asked, []string{"near:1"}) {
		t.Fatalf("of a block that has no other replica %q are asked", asked)
	}
	if asked := p.reads("near", "far"); !slices.Equal(asked, []string{"far:1"}) {
		t.Errorf("then %q are asked", asked)
	}
}
