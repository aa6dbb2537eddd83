package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"rankfs/meta"
)

// The bounds of a control socket. Its clients are people and their scripts.
const (
	maxConns  = 32      // of admins: far more commands than run at once on one mount
	maxOthers = 64      // of all other users together; they cannot keep an admin out
	maxHeader = 8 << 10 // net/http adds 4 KiB of its own
	maxBody   = 1 << 20 // a path is at most 4 KiB, but a plan may name every rank's host
)

// timeouts are those of one server; tests shorten them.
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
	for name, do := range routesOf(n) {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
			c := newCall(w, r, a, t)
			c.route = name
			defer c.cancel()
			if !a.may(c.who, rights[name]) {
				request, _ := io.ReadAll(c.body) // it is refused, whatever it is
				c.finish(nil, a.refuse(actOf(name, request)))
				return
			}
			c.finish(do(c))
		})
	}
	return mux
}

// routesOf has one route for each method of a Node; rights has a row for each. One
// that changes something, or may wait, streams its answer: an election may come
// between, and a client that leaves ends what it asked for.
func routesOf(n Node) map[string]func(*call) (any, error) {
	done := struct{}{}
	return map[string]func(*call) (any, error){
		"status":   func(*call) (any, error) { return n.Status(), nil },
		"all":      func(c *call) (any, error) { return n.All(c.stream()), nil },
		"load":     on(func(_ *call, r LoadRequest) (any, error) { return n.Load(r) }),
		"datasets": func(*call) (any, error) { return n.Datasets(), nil },
		"dataset":  on(func(_ *call, r named) (any, error) { return n.Dataset(r.Name) }),
		"explain":  on(func(c *call, r ExplainRequest) (any, error) { return n.Explain(c.stream(), r) }),
		"create":   on(func(c *call, r CreateRequest) (any, error) { return n.Create(c.stream(), r, c.progress) }),
		"refresh":  on(func(c *call, r RefreshRequest) (any, error) { return n.Refresh(c.stream(), r, c.progress) }),
		"verify":   on(func(c *call, r named) (any, error) { return n.Verify(c.stream(), r.Name, c.progress) }),
		"remove":   on(func(c *call, r named) (any, error) { c.stream(); return done, n.Remove(r.Name) }),

		"cluster":      func(*call) (any, error) { return n.Cluster(), nil },
		"token":        on(func(c *call, r TokenRequest) (any, error) { return n.CreateToken(c.stream(), r) }),
		"tokens":       func(*call) (any, error) { return n.Tokens(), nil },
		"drop-token":   on(func(c *call, r named) (any, error) { return done, n.DropToken(c.stream(), r.Name) }),
		"drain":        on(func(c *call, r DrainRequest) (any, error) { return done, n.DrainNode(c.stream(), r) }),
		"remove-node":  on(func(c *call, r named) (any, error) { return done, n.RemoveNode(c.stream(), r.Name) }),
		"promote-node": on(func(c *call, r named) (any, error) { return n.PromoteNode(c.stream(), r.Name) }),
		"plan":         on(func(c *call, r PlanRequest) (any, error) { return n.Plan(c.stream(), r) }),

		"queues":       func(*call) (any, error) { return n.Queues(), nil },
		"queue":        on(func(_ *call, r named) (any, error) { return n.Queue(r.Name) }),
		"reset-queue":  on(func(c *call, r ResetRequest) (any, error) { return n.ResetQueue(c.stream(), r) }),
		"drop-queue":   on(func(c *call, r named) (any, error) { return done, n.DropQueue(c.stream(), r.Name) }),
		"queue-policy": on(func(c *call, r PolicyRequest) (any, error) { return n.QueuePolicy(c.stream(), r) }),

		"policy": on(func(_ *call, r PolicyRequest) (any, error) { return n.Policy(r) }),
		"pin":    on(func(c *call, r CachePinRequest) (any, error) { return n.PinCache(c.stream(), r) }),
		"cached": func(c *call) (any, error) { c.stream(); return n.Cached(), nil },
		"evict":  on(func(c *call, r named) (any, error) { return n.Evict(c.stream(), r.Name) }),
		"warm":   on(func(c *call, r WarmRequest) (any, error) { return n.Warm(c.stream(), r, c.progress) }),

		"pool-jobs":   func(c *call) (any, error) { return n.PoolJobs(c.stream()) },
		"pool-job":    on(func(c *call, r named) (any, error) { return n.PoolJob(c.stream(), c.user(), r.Name) }),
		"pool-stage":  on(func(c *call, r named) (any, error) { return n.PoolStage(c.stream(), c.user(), r.Name) }),
		"make-pool":   on(func(c *call, r PoolRequest) (any, error) { return done, n.MakePool(c.stream(), c.user(), r) }),
		"pool-quota":  on(func(c *call, r PoolRequest) (any, error) { return done, n.SetQuota(c.stream(), c.user(), r) }),
		"seal-stage":  on(func(c *call, r named) (any, error) { return n.SealStage(c.stream(), c.user(), r.Name) }),
		"reset-stage": on(func(c *call, r named) (any, error) { return n.ResetStage(c.stream(), c.user(), r.Name) }),
		"drop-pool":   on(func(c *call, r named) (any, error) { return done, n.DropPool(c.stream(), c.user(), r.Name) }),

		"traces":       func(*call) (any, error) { return n.Traces(), nil },
		"trace":        on(func(_ *call, r named) (any, error) { return n.Trace(r.Name) }),
		"learn-trace":  on(func(c *call, r LearnRequest) (any, error) { c.stream(); return n.LearnTrace(r) }),
		"forget-trace": on(func(c *call, r named) (any, error) { c.stream(); return done, n.ForgetTrace(r.Name) }),
	}
}

// on reads the request of a route before it is done.
func on[R any](do func(*call, R) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var r R
		if err := c.request(&r); err != nil {
			return nil, err
		}
		return do(c, r)
	}
}

// A call is one request and its answer, used by one goroutine at a time.
type call struct {
	route  string
	ctx    context.Context // ends with the client's connection, or when it stops reading
	cancel context.CancelFunc
	w      http.ResponseWriter
	body   io.Reader
	conn   *http.ResponseController
	write  time.Duration
	who    caller
	admin  Admin
}

func newCall(w http.ResponseWriter, r *http.Request, a Admin, t timeouts) *call {
	ctx, cancel := context.WithCancel(r.Context())
	w.Header().Set("Content-Type", "application/x-ndjson")
	who, _ := ctx.Value(callerKey{}).(caller)
	return &call{
		ctx: ctx, cancel: cancel, w: w, who: who, admin: a,
		body:  http.MaxBytesReader(w, r.Body, maxBody),
		conn:  http.NewResponseController(w),
		write: t.write,
	}
}

// request reads the body, which must be exactly one JSON value of v's fields,
// and refuses a change to a caller that may only look.
func (c *call) request(v any) error {
	body, err := io.ReadAll(c.body)
	if err != nil {
		return fmt.Errorf("read request: %w (%w)", err, meta.ErrInvalid)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("read request: %w (%w)", err, meta.ErrInvalid)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("request %w: it is more than one JSON value", meta.ErrInvalid)
	}
	if asks, ok := v.(changer); ok && asks.changes() && !c.admin.is(c.who) {
		return c.admin.refuse(actOf(c.route, body))
	}
	return nil
}

// stream prepares for a long operation and returns its context. The deadline
// for the request must go: net/http watches for the end of the connection
// with a read, and would take its expiry for one.
func (c *call) stream() context.Context {
	_ = c.conn.SetReadDeadline(time.Time{})
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.write))
	if c.conn.Flush() != nil {
		c.cancel()
	}
	return c.ctx
}

// user is the caller of the request.
func (c *call) user() User { return User{c.who.uid, c.who.gid, c.admin.is(c.who)} }

func (c *call) progress(p Progress) { c.send(event{Progress: &p}) }

func (c *call) finish(result any, err error) {
	if err != nil {
		c.send(event{Error: meta.Tell(err)})
		return
	}
	data, err := json.Marshal(result)
	if err != nil {
		c.send(event{Error: meta.Tell(err)})
		return
	}
	c.send(event{Result: data})
}

// send writes one line. A client that does not take it ends the operation.
func (c *call) send(e event) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.write))
	if json.NewEncoder(c.w).Encode(e) != nil || c.conn.Flush() != nil {
		c.cancel()
	}
}
