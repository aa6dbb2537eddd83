package supply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var (
	errNoReader = errors.New("the client did not come for its answer")
	errUnread   = errors.New("the client did not read its answer")
	errAnew     = errors.New("another client has asked meanwhile")
)

// answer hands a notification to the client that comes for it with patience,
// and returns once it is read. An answer that is not read is left to the next
// request to discard.
//
// Just before the reading end was closed another client may have found it, and
// have its request in the FIFO by now: what came for an answer is that client,
// and the writing end is kept for it until it was heard.
func (p *pair) answer(ctx context.Context, n notification, patience time.Duration) error {
	w, err := p.reader(ctx, patience)
	if err != nil {
		return err
	}
	if w.unread() > 0 {
		p.early = w
		return errAnew
	}
	defer w.close()
	if _, err := unix.Write(w.fd, n.encode()); err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	left := w.drain(ctx, time.Now().Add(p.timeout))
	if left == 0 || ctx.Err() != nil {
		return nil // while the client holds the pipe open, so does what lies in it
	}
	p.stale = left
	return errUnread
}

// drain waits until all that was written is read, or its readers are gone, and
// says how much is left. To a writer the kernel reports that its readers are
// gone, and that a pipe that was full has room, but not that one which was never
// full is empty. A client that reads to the end of file waits for the close of
// this end, so the wait looks for itself, ever more rarely.
func (e *end) drain(ctx context.Context, deadline time.Time) (left int) {
	over := func() bool {
		if left = e.unread(); left > 0 && e.abandoned() {
			left = e.unread()
			return true
		}
		return left == 0
	}
	start := time.Now()
	err := e.await(ctx, start.Add(spin), over)
	for errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil && time.Now().Before(deadline) {
		now := time.Now()
		look := now.Add(min(max(now.Sub(start)/4, 2*spin), maxPause))
		if look.After(deadline) {
			look = deadline
		}
		err = e.park(ctx, look, over)
	}
	return left
}

// reader waits for the client to open the pipe for reading. The kernel gives
// no sign of that, so it tries: without a pause while the client must be on
// its way, then ever more rarely, a sixteenth of the time waited so far.
func (p *pair) reader(ctx context.Context, patience time.Duration) (*end, error) {
	if w := p.early; w != nil {
		if !w.abandoned() || w.unread() > 0 {
			p.early = nil
			return w, nil
		}
		p.dismiss() // that client has left; the one that sent this request will open
	}
	start := time.Now()
	for {
		w, err := p.pipe.open(unix.O_WRONLY)
		if !errors.Is(err, unix.ENXIO) {
			return w, err
		}
		waited := time.Since(start)
		if ctx.Err() != nil {
			patience = min(patience, waited+parting)
			ctx = context.WithoutCancel(ctx)
		}
		switch {
		case waited >= patience:
			return nil, errNoReader
		case waited < spin:
			yield()
		default:
			pause(min(waited/16, maxPause))
		}
	}
}

// dismiss ends the wait of a client that came early, with nothing.
func (p *pair) dismiss() {
	if p.early != nil {
		p.early.close()
		p.early = nil
	}
}

// release tells a client that waits for the answer of an earlier server that
// its request is lost. It must not be called while a request lies in the FIFO:
// the client would be woken and read it back.
func (p *pair) release(ctx context.Context) {
	switch err := p.answer(ctx, notification{sequence: closing, status: failed}, 0); {
	case err == nil:
		p.log.Warn("a client waited for an earlier server: told to ask again")
	case !errors.Is(err, errNoReader):
		p.log.Warn("a client of an earlier server was there and is dropped", "cause", err)
	}
}
