package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"rankfs/meta"
)

// Calls are what other nodes can ask for, by their numbers, which never change
// their meaning: nodes of several releases talk to each other. They are called
// concurrently.
type Calls map[uint8]Call

// A Call answers a request, which it checks but for the bounds of all requests.
// After an error of Answer it returns that.
type Call func(ctx context.Context, q Request, a Answer) error

// Pushes are the calls by which other nodes send something to this one. Their numbers
// are none of Calls.
type Pushes map[uint8]Push

// A Push takes what the other node sends, of which there are q.Bytes, or any number if
// that is 0. It succeeds only after it has read all, to io.EOF, or nothing: then there is
// no need to send it. Its result is up to MaxResult bytes, for the other node.
type Push func(ctx context.Context, q Request, in *Stream) (result []byte, err error)

// A handler handles the requests of a number.
type handler struct {
	gate   *gate
	do     func(ctx context.Context, q Request, in *Stream, a Answer) error
	pushed bool // the bytes of its requests are what it reads, not what it answers
}

// Limits say what a Server does for others at most.
type Limits struct {
	Requests  int // calls under way at once; more would only share the wire
	PerPeer   int // of one node
	Pushes    int // the same of pushes, so that neither waits for the others
	PerPusher int
	Queue     int // calls that wait, and pushes
	Runs      int // of all requests, 16 bytes each
	Conns     int
	PeerConns int // of one node

	Wait  time.Duration // of a request for its turn
	Idle  time.Duration // of a connection between requests
	Ask   time.Duration // for a request to come in, or the next frame of a push
	Take  time.Duration // for a reader to take something
	Beat  time.Duration // between signs of life while there is nothing to send
	Store time.Duration // for a call to emit something, for a push to get something

	// Name says which node a connection is of. By default its address is
	// taken for a node's.
	Name func(net.Conn) string
	Log  *slog.Logger
}

func (l Limits) withDefaults() Limits {
	number := func(p *int, d int) {
		if *p == 0 {
			*p = d
		}
	}
	span := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	number(&l.Requests, 64) // some tens of nodes fill a batch at the same time
	number(&l.PerPeer, 8)   // twice what a Client asks
	number(&l.Pushes, 64)
	number(&l.PerPusher, 8)
	number(&l.Queue, 256)    // each holds a connection and its runs
	number(&l.Runs, 4<<20)   // 64 MiB
	number(&l.Conns, 4096)   // a thousand nodes; 20 KiB each, TLS's above all
	number(&l.PeerConns, 32) // a Client has 4; those that were cut may linger
	span(&l.Wait, 10*time.Second)
	span(&l.Idle, 2*time.Minute) // longer than a Client's
	span(&l.Ask, 10*time.Second)
	span(&l.Take, 30*time.Second)
	span(&l.Beat, 3*time.Second) // a third of a Client's patience
	span(&l.Store, time.Minute)  // a Client has given up by then, or is gone
	if l.Name == nil {
		l.Name = host
	}
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	return l
}

func host(c net.Conn) string {
	name, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return name
}

func (l *Limits) patience() patience {
	return patience{step: l.Ask, take: l.Take, beat: l.Beat, nothing: l.Store}
}

// A Server answers other nodes. The lock guards the table of visitors, whose counters are
// atomic.
type Server struct {
	handlers map[uint8]handler
	limits   Limits
	room     *room
	count    serverCounters

	scratch *sync.Pool // of senders

	mu struct {
		sync.Mutex
		visitors map[string]*visitorCounters
	}
}

// NewServer makes a server; limits that are zero get their defaults.
func NewServer(calls Calls, pushes Pushes, l Limits) (*Server, error) {
	s := &Server{handlers: make(map[uint8]handler), limits: l.withDefaults(), scratch: newScratch()}
	if s.limits.Runs < MaxRuns {
		return nil, fmt.Errorf("limit of %d runs %w: use %d or more, as one request may have", s.limits.Runs, meta.ErrInvalid, MaxRuns)
	}
	s.room = newRoom(&s.limits)
	s.mu.visitors = make(map[string]*visitorCounters)
	gate := newGate(s.limits.Requests, s.limits.PerPeer, &s.limits)
	for number, call := range calls {
		s.handlers[number] = handler{gate: gate, do: func(ctx context.Context, q Request, _ *Stream, a Answer) error {
			return call(ctx, q, a)
		}}
	}
	gate = newGate(s.limits.Pushes, s.limits.PerPusher, &s.limits)
	for number, push := range pushes {
		if calls[number] != nil {
			return nil, fmt.Errorf("call %d %w: it is both asked for and pushed", number, meta.ErrInvalid)
		}
		s.handlers[number] = handler{gate: gate, do: push.do, pushed: true}
	}
	return s, nil
}

// do calls p, and answers with its result.
func (p Push) do(ctx context.Context, q Request, in *Stream, a Answer) error {
	result, err := p(ctx, q, in)
	if err = in.settle(err); err != nil || len(result) == 0 {
		return err
	}
	if len(result) > MaxResult {
		return fmt.Errorf("result of %d bytes %w: %d at most", len(result), meta.ErrInvalid, MaxResult)
	}
	a.Size(uint64(len(result)))
	return a.Emit(result)
}

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
	v := &visit{server: s, conn: c, node: node, count: s.visitor(node), in: newReceiver(c), out: newSender(c, s.limits.patience(), s.scratch)}
	err := v.serve(ctx)
	v.received()
	if ctx.Err() == nil && !errors.Is(err, io.EOF) {
		s.limits.Log.Debug("connection of another node ended", "node", node, "cause", err)
	}
}
