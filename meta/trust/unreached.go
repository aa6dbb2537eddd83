package trust

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// errTurnedAway is a connection that ended before a server said what it makes of it.
var errTurnedAway = meta.Worded(meta.ErrUnavailable, "closed without an answer: too many connect, or it is no rankfs port")

// explain says what the failure of a handshake means.
func explain(err error) error {
	var alert *net.OpError
	var garbage tls.RecordHeaderError
	switch {
	case errors.Is(err, meta.ErrDenied), errors.Is(err, meta.ErrBusy), errors.Is(err, meta.ErrUnavailable):
		return err
	case errors.Is(err, context.Canceled):
		return meta.Worded(errors.Join(meta.ErrUnavailable, err), "given up before there was an answer")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		return meta.Worded(errors.Join(meta.ErrUnavailable, err), "no answer in time; does a firewall drop what is sent there?")
	case errors.As(err, &alert) && alert.Op == "remote error":
		return meta.Worded(meta.ErrDenied, "the node does not take this one's certificate or version (%v): its log says more; are the clocks of both right?", alert.Err)
	case errors.As(err, &garbage):
		return meta.Worded(meta.ErrUnavailable, "it does not speak TLS, so it is no rankfs port")
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return errTurnedAway
	}
	return meta.Worded(errors.Join(meta.ErrUnavailable, err), "%s", unreached(err))
}

// unreached says why there is no connection, without the words of Go around it.
func unreached(err error) string {
	var unknown *net.DNSError
	var number unix.Errno
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return "the name of that host is not known here; look with: getent hosts " + unknown.Name
	case errors.As(err, &unknown):
		return "the name server does not say where that host is: " + unknown.Err
	case errors.Is(err, unix.ECONNREFUSED):
		return "nothing listens there; is a rankfs mounted there, with --listen at that address?"
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}
