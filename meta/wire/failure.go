package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode"

	"rankfs/meta"
	"rankfs/meta/fault"
)

// A remote is an error that a peer reports. One of no known kind counts as
// meta.ErrUnavailable; so does a cancellation or timeout at the peer, which must not
// be taken for one by the caller here.
type remote struct {
	kind error
	text string
}

func (r *remote) Error() string { return r.text }
func (r *remote) Unwrap() error { return r.kind }

// An own error is one of what is pushed: no other node is to blame for it.
type own struct{ error }

func (o *own) Unwrap() error { return o.error }

func isOwn(err error) bool {
	var o *own
	return errors.As(err, &o)
}

// encodeFailure writes the kind of an error, a blank, and as much of its words as
// there is room for.
func encodeFailure(err error) []byte {
	told := meta.Tell(err)
	text := told.Kind + " " + told.Message
	return []byte(text[:min(len(text), maxText)])
}

func decodeFailure(text []byte) error {
	kind, words, _ := strings.Cut(string(text), " ")
	r := &remote{(&meta.Told{Kind: kind}).Unwrap(), "it answers: " + printable(words)}
	switch r.kind {
	case nil, context.Canceled, context.DeadlineExceeded:
		r.kind = meta.ErrUnavailable
	}
	return r
}

// printable is a peer's text made safe to log.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// broken says of an error of a connection what a caller can branch on.
func broken(err error) error {
	switch {
	case err == nil, errors.Is(err, meta.ErrCorrupt), errors.Is(err, meta.ErrNoSpace), isOwn(err):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: it has stopped answering (%w)", meta.ErrUnavailable, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("%w: it hung up (%w)", meta.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
}

// guard calls f, which touches mapped memory, and makes a fault there an error
// of a kind.
func guard(kind error, f func() error) error {
	err := fault.Guard(f)
	if errors.Is(err, syscall.EFAULT) {
		return fmt.Errorf("%w: %v", kind, err)
	}
	return err
}

// abort ends a connection at once, without the farewell of TLS, for which a
// full socket would have to be waited for.
func abort(c net.Conn) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	_ = c.Close() // the connection is given up: an error changes nothing
}

// why prefers the reason for which a context ended to what came of it.
func why(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
