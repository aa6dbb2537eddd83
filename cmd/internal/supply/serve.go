package supply

import (
	"context"
	"errors"
	"time"
)

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

// rest waits a little after an error of the pipe itself, as when it was
// removed, and complains once.
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
