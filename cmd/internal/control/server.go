package control

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds of a control socket. Its clients are people and their scripts.
const (
	maxConns  = 32      // of admins: far more commands than run at once on one mount
	maxOthers = 64      // of all other users together; they cannot keep an admin out
	maxHeader = 8 << 10 // net/http adds 4 KiB of its own
)

// timeouts are the timeouts of one server; tests shorten them.
type timeouts struct {
	request time.Duration // to send a request, header and body
	write   time.Duration // to take one line of an answer
	idle    time.Duration // between two requests of one connection
	drain   time.Duration // for answers under way when the server ends
}

var defaultTimeouts = timeouts{
	request: 10 * time.Second,
	write:   30 * time.Second, // long enough for a person who suspends the command by mistake
	idle:    30 * time.Second,
	drain:   2 * time.Second,
}

// Serve answers requests for n on l until ctx is done, then closes l, cancels
// what is under way, waits for it and returns nil. Any other end is an error.
// All users who can open the socket may ask; changes are the admins'.
func Serve(ctx context.Context, l net.Listener, n Node, a Admin, log *slog.Logger) error {
	return serve(ctx, l, n, a, log, defaultTimeouts)
}

func serve(ctx context.Context, l net.Listener, n Node, a Admin, log *slog.Logger, t timeouts) error {
	// A connection counts from Accept, before its goroutine is started, to
	// the end of that goroutine, so that Wait cannot miss one.
	var conns sync.WaitGroup
	defer conns.Wait()
	s := &http.Server{
		Handler:           handler(n, a, t),
		ReadHeaderTimeout: t.request,
		ReadTimeout:       t.request,
		IdleTimeout:       t.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withCaller,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed:
				conns.Done()
			}
		},
	}
	defer s.Close()
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.drain)
		defer cancel()
		_ = s.Shutdown(bounded) // what did not end in time is closed by the defer above
	})
	isAdmin := func(c net.Conn) bool { return a.is(callerOf(c)) }
	err := s.Serve(newLimited(l, maxConns, maxOthers, isAdmin))
	if stop() {
		return fmt.Errorf("serve control socket: %w", err)
	}
	<-drained
	return nil
}

// handler answers the requests of callers that may use their route. Every request
// is a POST of one JSON value, so that a name never stands in a path.
func handler(n Node, a Admin, t timeouts) http.Handler {
	mux := http.NewServeMux()
	for name, route := range routesOf(n) {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
			c := newCall(w, r, route, a, t.write)
			defer c.cancel()
			if !a.may(c.who, route.right) {
				request, _ := io.ReadAll(c.body) // it is refused, whatever it is
				c.finish(nil, a.refuse(route.asked(request)))
				return
			}
			c.finish(route.do(c))
		})
	}
	return mux
}
