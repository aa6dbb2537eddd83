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

// A Client asks the daemon behind one socket. Its methods are those of a Node, each in the
// file of what it is about, with what is asked and answered. They may be called concurrently,
// and return errors that errors.Is matches with the daemon's own.
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
