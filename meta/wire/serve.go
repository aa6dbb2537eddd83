package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Serve answers on connections that l accepts, whose peers are authenticated already,
// until ctx is done. Then it closes l, ends what is under way, waits for
// it and returns nil. Any other end is an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	places := make(chan struct{}, s.limits.Conns)
	for {
		c, err := s.accept(ctx, l)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("accept from other nodes: %w", err), l.Close())
		}
		select {
		case places <- struct{}{}:
		default:
			s.refuse(c, "too many connections")
			continue
		}
		conns.Go(func() {
			s.attend(ctx, c)
			<-places
		})
	}
}

func (s *Server) refuse(c net.Conn, cause string) {
	s.count.refused.Add(1)
	s.limits.Log.Warn("connection of another node refused", "from", c.RemoteAddr().String(), "cause", cause)
	abort(c)
}

// accept goes on after errors that pass, such as too many open files.
func (s *Server) accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := l.Accept()
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return c, err
		}
		s.limits.Log.Warn("cannot accept another node's connection now", "cause", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// attend serves one connection to its end.
func (s *Server) attend(ctx context.Context, c net.Conn) {
	defer abort(c)
	defer context.AfterFunc(ctx, func() { abort(c) })()
	node := s.limits.Name(c)
	done, ok := s.room.connect(node)
	if !ok {
		s.refuse(c, "too many connections of this node")
		return
	}
	defer done()
	s.count.conns.Add(1)
	defer s.count.conns.Add(-1)
	v := &visit{
		line:   line{conn: c, in: newReceiver(c), out: newSender(c, s.limits.patience(), s.scratch), ask: s.limits.Ask},
		server: s, node: node, count: s.visitor(node),
	}
	err := v.serve(ctx)
	v.received()
	if ctx.Err() == nil && !errors.Is(err, io.EOF) {
		s.limits.Log.Debug("connection of another node ended", "node", node, "cause", err)
	}
}
