package wire

import (
	"errors"
	"sync/atomic"

	"rankfs/meta"
)

type clientCounters struct {
	requests, in, out, items, dials                  atomic.Uint64
	unavailable, corruptErrors, busy, other, stopped atomic.Uint64
	corrupt                                          atomic.Uint64
	under, waiting, conns                            atomic.Int64
}

// failed counts an error by its kind.
func (c *clientCounters) failed(err error, stopped bool) {
	switch {
	case stopped:
		c.stopped.Add(1)
	case errors.Is(err, meta.ErrUnavailable):
		c.unavailable.Add(1)
	case errors.Is(err, meta.ErrCorrupt):
		c.corruptErrors.Add(1)
	case errors.Is(err, meta.ErrBusy):
		c.busy.Add(1)
	default:
		c.other.Add(1)
	}
}

// Counts count what was asked for, and what came of it.
type Counts struct {
	Requests, BytesIn, BytesOut uint64
	Items                       uint64 // of the runs of requests that were answered whole
	Busy                        uint64 // requests refused for want of room
	Failed                      uint64 // and those that failed otherwise
}

type counters struct {
	requests, in, out, items, busy, failed atomic.Uint64
}

func (c *counters) read() Counts {
	return Counts{c.requests.Load(), c.in.Load(), c.out.Load(), c.items.Load(), c.busy.Load(), c.failed.Load()}
}

// ended counts an error. That the caller gave up, or could not go on, is not the node's.
func (c *counters) ended(err error, stopped bool) {
	switch {
	case stopped, isOwn(err):
	case errors.Is(err, meta.ErrBusy):
		c.busy.Add(1)
	default:
		c.failed.Add(1)
	}
}

type serverCounters struct {
	counters
	slow, refused        atomic.Uint64
	conns, queued, under atomic.Int64
}
