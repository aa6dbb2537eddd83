package supply

import (
	"log/slog"
	"time"
)

const (
	// amends is how long a refused request is remembered, for its sender to
	// come and hear so. It is short: its sender may be no client at all. For as
	// long a server that ends by itself still tells a client that there is no more.
	amends = time.Second

	// parting is how long a server that ends still waits for the reader of an
	// answer that is due.
	parting = 50 * time.Millisecond

	// maxPause bounds the sleep between two looks for a reader that opens the pipe,
	// or that has read all: the kernel gives no sign of either.
	maxPause = 5 * time.Millisecond

	firstBytes = 1 << 20 // of a new mapped file, at least: zero bytes cannot be mapped
)

// A pair serves one rank. One goroutine at a time acts for it; whichever ends
// the serving closes done.
type pair struct {
	place
	pipe    pipe
	mapped  *mapped
	once    bool // its end is waited for
	timeout time.Duration
	log     *slog.Logger

	inherited bool            // not made here, and no request was waited for yet
	hung      <-chan struct{} // closed when an overdue copy has returned; nil if there is none
	stale     int             // bytes of an answer that was not read
	early     *end            // to write to a client whose request is not read yet
	trouble   string          // the last complaint about the pipe itself
	done      chan struct{}
	last      chan struct{} // closed when the rank's last batch was supplied, or its end was told
}

func openPair(at place, largest int64, c Config) (_ *pair, err error) {
	p := &pair{
		place:   at,
		once:    c.Once,
		timeout: c.Timeout,
		log:     c.Log.With("rank", at.rank, "pipe", at.pipe),
		done:    make(chan struct{}),
		last:    make(chan struct{}),
	}
	if p.mapped, err = openMapped(at.mapped); err != nil {
		return nil, err
	}
	if !inMemory(at.mapped) {
		p.log.Warn("mapped file is on a disk: every batch is written to it; use a tmpfs", "file", at.mapped)
	}
	if p.mapped.created {
		largest = max(firstBytes, largest)
	}
	if err = p.mapped.hold(largest); err == nil {
		p.pipe, err = makePipe(at.pipe)
	}
	if err != nil {
		p.pipe.remove()
		p.mapped.remove()
		p.mapped.close()
		return nil, err
	}
	p.inherited = !p.pipe.created
	return p, nil
}
