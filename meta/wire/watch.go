package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"rankfs/meta"
)

var (
	errGone  = errors.New("the node that asked has hung up")
	errEarly = fmt.Errorf("connection %w: it asks before it was answered", meta.ErrInvalid)
)

// watch cancels a request when its connection ends, while nothing may come from there;
// no other goroutine reads the connection meanwhile. What it returns ends the watch and
// says whether that was so.
func (v *visit) watch(cancel context.CancelCauseFunc) (unwatch func() error) {
	var gone error
	done := make(chan struct{})
	over := v.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(done)
		var b [1]byte
		n, err := v.conn.Read(b[:])
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
		err := v.conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		return errors.Join(over, err, gone)
	}
}
