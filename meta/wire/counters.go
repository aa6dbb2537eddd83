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

// peerCounters count for one node.
type peerCounters struct {
	requests, in, out, items, busy, failed atomic.Uint64
}

// ended counts an error. That the caller gave up, or could not go on, is not the node's.
func (c *peerCounters) ended(err error, stopped bool) {
	switch {
	case stopped, isOwn(err):
	case errors.Is(err, meta.ErrBusy):
		c.busy.Add(1)
	default:
		c.failed.Add(1)
	}
}

type serverCounters struct {
	requests, in, out, items    atomic.Uint64
	failed, busy, slow, refused atomic.Uint64
	conns, queued, under        atomic.Int64
}

// visitorCounters count for one node.
type visitorCounters struct {
	requests, in, out, items, busy, failed atomic.Uint64
}
