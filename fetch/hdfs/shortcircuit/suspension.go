package shortcircuit

import (
	"fmt"
	"time"
)

// A suspension follows a failure to have files, of one block or by one socket; the zero value is
// none.
type suspension struct {
	cause error
	since time.Time
	until time.Time // it is not tried again before, unless
	from  origin    // has moved: another datanode may do better
}

func (l suspension) lasts() bool {
	return l.cause != nil && time.Now().Before(l.until) && !l.from.moved()
}

// A uselessError is of the socket or its datanode, not of one block.
type uselessError struct{ cause error }

func (e *uselessError) Error() string { return e.cause.Error() }

func (e *uselessError) Unwrap() error { return e.cause }

func useless(format string, args ...any) error { return &uselessError{fmt.Errorf(format, args...)} }
