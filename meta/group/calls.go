package group

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
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// The bounds of calls between nodes. Bulk goes another way.
const (
	maxCall     = 2 * state.MaxCommand // which is in base 64
	maxCalls    = 256                  // under way at this node
	maxConns    = 16                   // to a node; one more is a handshake, so all are kept until they are idle
	callIdle    = time.Minute
	callRequest = 10 * time.Second // to send a request
)

// The calls of this package.
const (
	callApply     = "/apply"
	callHeartbeat = "/pulse"
	callHello     = "/hello"
	callNow       = "/now"
	callEntrust   = "/entrust"
	callKey       = "/key"
	callForget    = "/forget"
	callAdmit     = "/admit"
	callVotes     = "/settled"
)

// calls are the requests of nodes to one another: JSON over HTTP/1.1 on
// connections that are authenticated already. The handlers are set once, by serve,
// before a call is made or answered that needs them.
type calls struct {
	self     string
	handlers map[string]Handler
	slots    chan struct{}
	server   *http.Server
	client   *http.Client
	done     sync.WaitGroup
}

// An answer is the reply to a call: one of its fields is set.
type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *meta.Told      `json:"error,omitempty"`
}

// A caller is the peer that has made a connection, as its certificate says.
type caller struct {
	node string
	role trust.Role
}

type callerKey struct{}

// callerOf is the caller of a handler; the zero caller, if this node calls itself.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// newCalls returns the calls of node self, which dial other nodes with dial, and can
// serve the connections of a listener.
func newCalls(self string, dial func(ctx context.Context, id string) (net.Conn, error), log *slog.Logger) *calls {
	c := &calls{self: self, slots: make(chan struct{}, maxCalls)}
	c.server = &http.Server{
		Handler: http.HandlerFunc(c.answer), ReadTimeout: callRequest, IdleTimeout: callIdle, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			id, _ := trust.PeerID(conn)
			return context.WithValue(ctx, callerKey{}, caller{id, trust.PeerRole(conn)})
		},
	}
	c.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			id, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return dial(ctx, id)
		},
		MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxConns, IdleConnTimeout: callIdle / 2, DisableCompression: true,
	}}
	return c
}

// serve answers the calls that come to l.
func (c *calls) serve(l net.Listener, handlers map[string]Handler) {
	c.handlers = handlers
	c.done.Go(func() { _ = c.server.Serve(l) })
}

func (c *calls) close() error {
	c.client.CloseIdleConnections()
	err := c.server.Close()
	c.done.Wait()
	return err
}

// errFormer is for a call on a connection that was made with the certificate of a member
// who is an operator now. With the next connection, and certificate, it is another matter.
var errFormer = errors.New("its certificate is of before it was made an operator; it is getting another")

// answer answers one call. One that is refused for the certificate of its connection has
// the caller make another.
func (c *calls) answer(w http.ResponseWriter, r *http.Request) {
	var a answer
	if result, err := c.handle(w, r); err != nil {
		a.Error = meta.Tell(err)
		if errors.Is(err, errFormer) {
			w.Header().Set("Connection", "close")
		}
	} else {
		a.Result = result
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // it fails only if the caller has gone
}

func (c *calls) handle(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, fmt.Errorf("this node %w: %d calls are under way", meta.ErrBusy, maxCalls)
	}
	name := r.URL.Path
	handler := c.handlers[name]
	if handler == nil || r.Method != http.MethodPost {
		return nil, meta.Worded(meta.ErrNotExist, "call %q does not exist at this node; is it of another version?", name)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		return nil, fmt.Errorf("read call %s: %w (%w)", name, err, meta.ErrInvalid)
	}
	result, err := handler(r.Context(), callerOf(r.Context()).node, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// Ask calls a node, which may be this one; result may be nil.
func (c *calls) Ask(ctx context.Context, id, name string, request, result any) error {
	if id != c.self {
		return c.ask(ctx, id, name, request, result)
	}
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := c.handlers[name](ctx, id, data)
	if err != nil || result == nil {
		return err
	}
	if data, err = json.Marshal(answer); err != nil {
		return err
	}
	return json.Unmarshal(data, result)
}

// ask calls another node; result may be nil. An error that the node gave is a *meta.Told; any other wraps
// meta.ErrUnavailable, and leaves open whether the node got the call.
func (c *calls) ask(ctx context.Context, id, name string, request, result any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+id+name, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return unavailable(ctx, id, err)
	}
	defer response.Body.Close()
	var a answer
	if err := json.NewDecoder(io.LimitReader(response.Body, maxCall)).Decode(&a); err != nil {
		return unavailable(ctx, id, err)
	}
	if a.Error != nil {
		return a.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

func unavailable(ctx context.Context, id string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return fmt.Errorf("node %s %w: %w", id, meta.ErrUnavailable, err)
}

// decode reads the request of a call. A later release may say more in it, which is
// overlooked, as it is in answers: what must not be is a call of another name, or is
// said when the cluster has gone over to that release's commands.
func decode[T any](request json.RawMessage) (v T, err error) {
	if err := json.Unmarshal(request, &v); err != nil {
		return v, fmt.Errorf("read call: %w (%w)", err, meta.ErrInvalid)
	}
	return v, nil
}
