package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"rankfs/meta"
)

// A route says who may make a call, and how it is done. Act is empty if all users may make it.
type route struct {
	right right
	act   string
	do    func(*call) (any, error)
}

// asked says what a request asks for, and of what, for a refusal. Of one that cannot be read
// it says what the route does.
func (r route) asked(request []byte) string {
	var is struct {
		Name, View, Node, For, Tier string
		Drain, Unsettle             bool
	}
	_ = json.Unmarshal(request, &is)
	act := r.act
	if act == "settle plan of" && is.Unsettle || act == "pin" && is.Tier == "" || act == "drain node" && !is.Drain {
		act = "un" + act
	}
	return strings.TrimSpace(act + " " + cmp.Or(is.Name, is.View, is.Node, is.For))
}

// A call is one request and its answer, used by one goroutine at a time.
type call struct {
	route  route
	ctx    context.Context // ends with the client's connection, or when it stops reading
	cancel context.CancelFunc
	w      http.ResponseWriter
	body   io.Reader
	conn   *http.ResponseController
	write  time.Duration
	who    caller
	admin  Admin
}

// maxBody bounds a request: a path is at most 4 KiB, but a plan may name every rank's host.
const maxBody = 1 << 20

func newCall(w http.ResponseWriter, r *http.Request, is route, a Admin, write time.Duration) *call {
	ctx, cancel := context.WithCancel(r.Context())
	w.Header().Set("Content-Type", "application/x-ndjson")
	who, _ := ctx.Value(callerKey{}).(caller)
	return &call{
		route: is, ctx: ctx, cancel: cancel, w: w, who: who, admin: a,
		body:  http.MaxBytesReader(w, r.Body, maxBody),
		conn:  http.NewResponseController(w),
		write: write,
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
		return c.admin.refuse(c.route.asked(body))
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
