package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Client asks the daemon behind one socket. Its methods are those of a Node,
// may be called concurrently, and return errors that errors.Is matches with
// the daemon's own.
type Client struct {
	socket string
	http   *http.Client
	answer time.Duration // for an answer to begin
	change time.Duration // for a change of the cluster, an election and all
}

// Dial returns the client of the daemon that listens on socket. It connects
// when it is first asked.
func Dial(socket string) *Client {
	const answer = 10 * time.Second // a daemon answers in milliseconds unless it is stopped
	dialer := net.Dialer{Timeout: answer}
	const change = 30 * time.Second // a daemon gives up after ten
	return &Client{socket: socket, answer: answer, change: change, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}}
}

// Status asks for the state of the daemon.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "status", struct{}{}, nil)
}

// All asks for the state of all nodes of the cluster in short.
func (c *Client) All(ctx context.Context) ([]NodeStatus, error) {
	return ask[[]NodeStatus](ctx, c, "all", struct{}{}, nil)
}

// Datasets asks for all registered datasets.
func (c *Client) Datasets(ctx context.Context) ([]Dataset, error) {
	return ask[[]Dataset](ctx, c, "datasets", struct{}{}, nil)
}

// Dataset asks for one registered dataset.
func (c *Client) Dataset(ctx context.Context, name string) (Dataset, error) {
	return ask[Dataset](ctx, c, "dataset", named{name}, nil)
}

// Explain asks what the name of a view stands for, or why for nothing.
func (c *Client) Explain(ctx context.Context, r ExplainRequest) (Explanation, error) {
	return ask[Explanation](ctx, c, "explain", r, nil)
}

// Remove unregisters a dataset.
func (c *Client) Remove(ctx context.Context, name string) error {
	_, err := change[struct{}](ctx, c, "remove", named{name})
	return err
}

// Create registers a dataset. It calls progress from the calling goroutine.
func (c *Client) Create(ctx context.Context, r CreateRequest, progress func(Progress)) (Dataset, error) {
	return ask[Dataset](ctx, c, "create", r, progress)
}

// Refresh indexes a dataset's source again, as Create.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest, progress func(Progress)) (Dataset, error) {
	return ask[Dataset](ctx, c, "refresh", r, progress)
}

// Verify reads every record of a dataset back, as Create.
func (c *Client) Verify(ctx context.Context, name string, progress func(Progress)) (Verification, error) {
	return ask[Verification](ctx, c, "verify", named{name}, progress)
}

// Cluster asks what the node knows of its cluster.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	return ask[Cluster](ctx, c, "cluster", struct{}{}, nil)
}

// CreateToken makes a token that lets nodes into the cluster.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	return change[Token](ctx, c, "token", r)
}

// Tokens asks which tokens still let nodes in.
func (c *Client) Tokens(ctx context.Context) ([]TokenInfo, error) {
	return ask[[]TokenInfo](ctx, c, "tokens", struct{}{}, nil)
}

// DropToken has a token let no more nodes in.
func (c *Client) DropToken(ctx context.Context, id string) error {
	_, err := change[struct{}](ctx, c, "drop-token", named{id})
	return err
}

// DrainNode has a node get no new work, or some again.
func (c *Client) DrainNode(ctx context.Context, r DrainRequest) error {
	_, err := change[struct{}](ctx, c, "drain", r)
	return err
}

// RemoveNode takes a node out of the cluster for good.
func (c *Client) RemoveNode(ctx context.Context, id string) error {
	_, err := change[struct{}](ctx, c, "remove-node", named{id})
	return err
}

// PromoteNode makes a node an operator, or has the node that is asked say that it is to
// be one.
func (c *Client) PromoteNode(ctx context.Context, id string) (Promotion, error) {
	return change[Promotion](ctx, c, "promote-node", named{id})
}

// Plan asks which rank reads which bytes in one epoch of a view, and from where. It
// takes as long as the daemon needs to compute that.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (Survey, error) {
	return ask[Survey](ctx, c, "plan", r, unseen)
}

// Queues asks how far each queue is.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	return ask[[]Queue](ctx, c, "queues", struct{}{}, nil)
}

// Queue asks for one queue and its readers.
func (c *Client) Queue(ctx context.Context, name string) (QueueDetail, error) {
	return ask[QueueDetail](ctx, c, "queue", named{name}, nil)
}

// ResetQueue begins a queue again.
func (c *Client) ResetQueue(ctx context.Context, r ResetRequest) (Queue, error) {
	return change[Queue](ctx, c, "reset-queue", r)
}

// DropQueue forgets a queue, and how far it was.
func (c *Client) DropQueue(ctx context.Context, name string) error {
	_, err := change[struct{}](ctx, c, "drop-queue", named{name})
	return err
}

// QueuePolicy asks by which rule new queues hand out batches, or sets another.
func (c *Client) QueuePolicy(ctx context.Context, r PolicyRequest) (Policy, error) {
	return change[Policy](ctx, c, "queue-policy", r)
}

// Policy asks by which policy the cache keeps slabs, or sets another.
func (c *Client) Policy(ctx context.Context, r PolicyRequest) (Policy, error) {
	return ask[Policy](ctx, c, "policy", r, nil)
}

// PinCache has a view pinned in the cache, or no longer.
func (c *Client) PinCache(ctx context.Context, r CachePinRequest) (CachePin, error) {
	return ask[CachePin](ctx, c, "pin", r, unseen)
}

// Cached asks how much of each view is cached.
func (c *Client) Cached(ctx context.Context) (CacheList, error) {
	return ask[CacheList](ctx, c, "cached", struct{}{}, unseen)
}

// Evict gives up what is cached of a dataset or a view.
func (c *Client) Evict(ctx context.Context, name string) (Eviction, error) {
	return ask[Eviction](ctx, c, "evict", named{name}, unseen)
}

// Warm makes batches of a view ready, as Create.
func (c *Client) Warm(ctx context.Context, r WarmRequest, progress func(Progress)) (Warm, error) {
	return ask[Warm](ctx, c, "warm", r, progress)
}

// change sends a request that the whole cluster has to agree to.
func change[T any](ctx context.Context, c *Client, method string, request any) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.change, ErrNoAnswer)
	defer cancel()
	result, err := ask[T](ctx, c, method, request, unseen)
	if errors.Is(err, errStopped) {
		err = fmt.Errorf("%w; look whether it was done all the same", err)
	}
	return result, err
}

// unseen is for what may take its time and says nothing meanwhile.
func unseen(Progress) {}

// ErrNoAnswer is the error of a daemon that is there and says nothing, as one
// that is stopped.
var ErrNoAnswer = meta.Worded(meta.ErrUnavailable, "it does not answer")

// ErrGone is the error of a daemon that was there and has ended, or has hung up.
var ErrGone = meta.Worded(meta.ErrUnavailable, "it went away before it answered")

// errStopped is the error of a command that a signal has stopped while it waited for the
// daemon.
var errStopped = meta.Worded(context.Canceled, "stopped by a signal before it answered")

// gone reports whether a connection failed as those with a daemon that ends do.
func gone(err error) bool {
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, fs.ErrNotExist, unix.ECONNREFUSED, unix.ECONNRESET, unix.EPIPE} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// ask sends one request and reads its answer. Only an answer with progress
// may take longer than c.answer as a whole; that one must begin in time.
func ask[T any](ctx context.Context, c *Client, method string, request any, progress func(Progress)) (T, error) {
	var result T
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.answer, func() { cancel(ErrNoAnswer) })
	defer late.Stop()

	body, err := c.post(ctx, method, request)
	if err != nil {
		return result, fmt.Errorf("ask daemon at %s: %w", c.socket, cause(ctx, err))
	}
	defer body.Close()
	if progress != nil {
		late.Stop()
	}
	d := json.NewDecoder(body)
	for {
		var e event
		err := d.Decode(&e)
		switch {
		case err != nil:
			return result, fmt.Errorf("ask daemon at %s: %w", c.socket, cause(ctx, err))
		case e.Error != nil:
			return result, e.Error
		case e.Result != nil:
			return result, json.Unmarshal(e.Result, &result)
		case e.Progress != nil && progress != nil:
			progress(*e.Progress)
		}
	}
}

func (c *Client) post(ctx context.Context, method string, request any) (io.ReadCloser, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rankfs/v1/"+method, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		answer.Body.Close()
		return nil, fmt.Errorf("the daemon %w: too many others ask", meta.ErrBusy)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s; is it another version of rankfs?", method, answer.Status)
	}
	return answer.Body, nil
}

// cause prefers the reason for which ctx was cancelled, and that the daemon has gone, to
// what net/http made of it.
func cause(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	switch {
	case errors.Is(why, context.Canceled):
		return errStopped
	case why != nil:
		return why
	case gone(err):
		return ErrGone
	}
	return err
}

// Traces asks for a summary of the trace that is kept for each dataset.
func (c *Client) Traces(ctx context.Context) ([]Trace, error) {
	return ask[[]Trace](ctx, c, "traces", struct{}{}, nil)
}

// Trace asks for the whole trace of one dataset.
func (c *Client) Trace(ctx context.Context, dataset string) (Trace, error) {
	return ask[Trace](ctx, c, "trace", named{dataset}, nil)
}

// LearnTrace keeps a trace of opens for a dataset.
func (c *Client) LearnTrace(ctx context.Context, r LearnRequest) (Trace, error) {
	return ask[Trace](ctx, c, "learn-trace", r, unseen)
}

// ForgetTrace drops the trace of a dataset.
func (c *Client) ForgetTrace(ctx context.Context, dataset string) error {
	_, err := ask[struct{}](ctx, c, "forget-trace", named{dataset}, unseen)
	return err
}
