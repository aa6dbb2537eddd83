package supply

import (
	"context"
	"errors"
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
	stale     int             // bytes of an answer that no one has read
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

// close is the last call. A copy that hangs in the kernel keeps the mapping
// that it writes to, and the lock, until the process ends.
func (p *pair) close() {
	p.dismiss()
	p.pipe.remove()
	p.mapped.remove()
	if p.hung != nil {
		select {
		case <-p.hung:
		case <-time.After(amends):
			p.log.Warn("the mount still holds a read: its mapping stays until the process ends")
			return
		}
	}
	p.mapped.close()
}

// serve repeats request and answer until the client closes the pair or the
// context ends.
func (p *pair) serve(ctx context.Context) {
	for ctx.Err() == nil {
		sequence, err := p.request(ctx)
		var bad refusal
		switch {
		case err != nil && ctx.Err() != nil:
		case errors.As(err, &bad):
			p.log.Warn("request refused", "cause", err)
			p.answer(ctx, notification{sequence: closing, status: failed}, min(amends, p.timeout))
		case err != nil:
			p.rest(ctx, err)
		case sequence == closing:
			close(p.done)
			return
		default:
			p.trouble = ""
			if !p.supply(ctx, sequence) {
				return
			}
		}
	}
	close(p.done)
}

// supply loads a batch and tells the client. It is false if that took so long
// that another goroutine has told it and serves on.
func (p *pair) supply(ctx context.Context, sequence uint64) bool {
	tell := func(b loaded, err error) {
		over := b.last || errors.Is(err, errEnded)
		err = p.answer(ctx, p.outcome(sequence, b.bytes, err), p.timeout)
		if err != nil && err != errAnew { // that is told later
			p.log.Warn("answer dropped", "batch", sequence, "cause", err)
		}
		if err == nil && over {
			p.finished()
		}
	}
	b, err, mine := p.load(ctx, sequence, func(err error) {
		tell(loaded{}, err)
		p.serve(ctx)
	})
	if mine {
		tell(b, err)
	}
	return mine
}

// finished notes that the client has been told of all that there is.
func (p *pair) finished() {
	select {
	case <-p.last: // the client has asked once more
	default:
		close(p.last)
	}
}

// rest waits a little after an error of the pipe itself, as when someone has
// removed it, and complains once.
func (p *pair) rest(ctx context.Context, err error) {
	if err.Error() != p.trouble {
		p.trouble = err.Error()
		p.log.Error("pipe is not usable, trying again", "cause", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(min(amends, p.timeout)):
	}
}

// outcome puts into a notification what became of a request.
func (p *pair) outcome(sequence uint64, total int64, err error) notification {
	switch {
	case err == nil:
		return delivered(sequence, total)
	case errors.Is(err, errEnded):
		return notification{sequence: sequence, status: ended}
	default:
		p.log.Error("batch not supplied", "batch", sequence, "cause", err)
		return notification{sequence: sequence, status: failed}
	}
}
