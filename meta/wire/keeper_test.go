package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

func pattern(n int) []byte {
	b := make([]byte, (n+7)&^7)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i+1)*0x9e3779b97f4a7c15)
	}
	return b[:n]
}

// A keeper takes what is pushed.
type keeper struct {
	room  int                                         // of one read
	ahead int                                         // that is granted before it is read
	most  uint64                                      // that comes, if its length is not known; 0 if that is not either
	each  func(ctx context.Context, had int) error    // before each read; may be nil
	then  func(ctx context.Context, got []byte) error // once all is read; may be nil
	ends  chan ended
}

// ended is what came of a push where it came to.
type ended struct {
	got []byte
	err error // of reading; nil if all is there
}

func newKeeper() *keeper { return &keeper{room: 64 << 10, ends: make(chan ended, 10_000)} }

// pushes is the table with the keeper; its result is how many bytes it has kept.
func (k *keeper) pushes() wire.Pushes {
	return wire.Pushes{callPush: func(ctx context.Context, _ wire.Request, in *wire.Stream) ([]byte, error) {
		got, err := k.read(ctx, in)
		k.ends <- ended{got, err}
		if err == nil && k.then != nil {
			err = k.then(ctx, got)
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(len(got))), err
	}}
}

func (k *keeper) read(ctx context.Context, in *wire.Stream) (got []byte, err error) {
	p := make([]byte, k.room)
	if k.most > 0 {
		in.AtMost(k.most)
	}
	for n := k.ahead; ; {
		if k.each != nil {
			if err := k.each(ctx, len(got)); err != nil {
				return got, err
			}
		}
		if k.ahead > 0 {
			if err := in.Grant(uint64(n)); err != nil {
				return got, err
			}
		}
		n, err = in.Read(p)
		got = append(got, p[:n]...)
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
	}
}

func (k *keeper) serve(t testing.TB, l net.Listener, limits wire.Limits) (server *wire.Server, stop func()) {
	return wiretest.Serve(t, l, pulls, k.pushes(), limits)
}

// A pair is a keeper on a server, and a client.
type pair struct {
	*keeper
	server *wire.Server
	client *wire.Client
}

// inBubble runs f on virtual time, with a pair over pipes.
func inBubble(t *testing.T, k *keeper, limits wire.Limits, config wire.Config, f func(t *testing.T, p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k.ends = make(chan ended, 100)
		l, dial := wiretest.Pipe(t)
		server, stop := k.serve(t, l, limits)
		defer stop()
		c := wire.New(dial, config)
		defer wiretest.Close(t, c)
		f(t, &pair{k, server, c})
	})
}

func (p *pair) push(t testing.TB, feed wire.Feed) error {
	_, err := p.client.Push(t.Context(), "n", wire.Request{Call: callPush}, feed)
	return err
}

// wellAgain reports what a pull and a push come to after what came before, and whether
// these were its connections.
func (p *pair) wellAgain(t *testing.T, dials uint64) {
	t.Helper()
	p.each, p.then = nil, nil
	for len(p.ends) > 0 {
		<-p.ends
	}
	got := make([]byte, 1000)
	if err := p.client.Pull(t.Context(), "n", wire.Request{Call: callPull, Bytes: 1000}, wire.NewScatter([][]byte{got})); err != nil || !bytes.Equal(got, pattern(1000)) {
		t.Errorf("a pull afterwards: %v", err)
	}
	if err := p.push(t, of(1000)); err != nil {
		t.Errorf("a push afterwards: %v", err)
	}
	if end := <-p.ends; !bytes.Equal(end.got, pattern(1000)) {
		t.Errorf("a push afterwards brings %d bytes", len(end.got))
	}
	if n := p.client.Stats().Dials; n != dials {
		t.Errorf("%d connections were made, want %d", n, dials)
	}
}

// of is a feed of n bytes of the pattern.
func of(n int) wire.Feed { return wire.From(bytes.NewReader(pattern(n))) }

// endless emits until it is stopped, and notes how much it could.
func endless(piece int, emitted *atomic.Int64) wire.Feed {
	b := make([]byte, piece)
	return func(_ context.Context, emit func([]byte) error) error {
		for {
			if err := emit(b); err != nil {
				return err
			}
			emitted.Add(int64(piece))
		}
	}
}
