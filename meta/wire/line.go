package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"rankfs/meta"
)

var (
	errGone  = errors.New("the node that asked has hung up")
	errEarly = fmt.Errorf("connection %w: it asks before it was answered", meta.ErrInvalid)
)

// A line is a connection of another node, in both directions, on the side that answers.
type line struct {
	conn net.Conn
	in   *receiver
	out  *sender
	ask  time.Duration // for a request to come in, or the next frame of a push
}

// watch cancels a request when its connection ends, while nothing may come from there;
// no other goroutine reads the connection meanwhile. What it returns ends the watch and
// says whether that was so.
func (l *line) watch(cancel context.CancelCauseFunc) (unwatch func() error) {
	var gone error
	done := make(chan struct{})
	over := l.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(done)
		var b [1]byte
		n, err := l.conn.Read(b[:])
		switch {
		case n > 0:
			gone = errEarly
		case !errors.Is(err, os.ErrDeadlineExceeded):
			gone = errGone
		}
		if gone != nil {
			cancel(gone)
		}
	}()
	return func() error {
		err := l.conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		return errors.Join(over, err, gone)
	}
}
