package supply

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A refusal says why bytes are no request.
type refusal string

func (r refusal) Error() string { return string(r) }

// request is the idle state: it waits for a request, as long as it takes. Of several
// it returns the newest: a client sends the next only after an answer, so the clients
// of the others are dead.
func (p *pair) request(ctx context.Context) (uint64, error) {
	in, err := p.listen(ctx)
	if err != nil {
		p.dismiss()
		return 0, err
	}
	sequence, err := p.hear(ctx, in)
	in.close()
	if err == nil && (in.n > requestBytes || p.early != nil) {
		p.log.Warn("asked anew before an answer: an earlier client has died, or two use one pipe")
	}
	return sequence, err
}

func (p *pair) hear(ctx context.Context, in *incoming) (uint64, error) {
	if err := p.idle(ctx, in); err != nil {
		return 0, err
	}
	err := in.await(ctx, time.Now().Add(p.timeout), in.whole)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	in.look()
	return in.sequence()
}

// listen opens the reading end. The first time, on a pipe that was there
// already, a client of an earlier server may be waiting on the other side.
func (p *pair) listen(ctx context.Context) (*incoming, error) {
	for {
		r, err := p.pipe.open(unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		p.discard(r)
		in := &incoming{end: r}
		if p.early != nil && (p.early.id != in.id || !in.begun()) { // it has read its own request
			p.dismiss()
		}
		if !p.inherited || !in.unwritten() {
			p.inherited = false
			return in, nil
		}
		in.close()
		p.inherited = false
		p.release(ctx)
	}
}

// idle waits for the first byte. At each deadline it makes sure that clients
// would still find this pipe under its name, and the first time it says so.
func (p *pair) idle(ctx context.Context, in *incoming) error {
	for quiet := false; ; quiet = true {
		err := in.await(ctx, time.Now().Add(p.timeout), in.begun)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if id, err := findPipe(p.pipe.path); err != nil {
			return err
		} else if id != in.id {
			return fmt.Errorf("pipe %s: was replaced", p.pipe.path)
		}
		if !quiet {
			p.log.Info("no request yet", "waited", p.timeout, "client", in.held)
		}
	}
}

// discard takes an unread answer back out of the FIFO. It was lost with the
// FIFO's content if no process held it open for a moment; what is there then is
// the request of a client that was waiting.
func (p *pair) discard(r *end) {
	n := p.stale
	if n == 0 {
		return
	}
	p.stale = 0
	if more := r.unread() - n; more >= 0 && more%requestBytes == 0 {
		unix.Read(r.fd, make([]byte, n))
	}
}

// incoming gathers a request, and those of clients that have died. It has room for
// less than an answer, so that an answer which no client read is not taken for
// requests.
type incoming struct {
	*end
	buf  [4 * requestBytes]byte
	n    int
	held bool // at the last look, a writer had the pipe open
}

func (in *incoming) look() {
	n, err := unix.Read(in.fd, in.buf[in.n:])
	in.n += max(n, 0)
	in.held = n > 0 || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
}

// unwritten reports that no bytes have come and no writer has the pipe open.
func (in *incoming) unwritten() bool {
	in.look()
	return in.n == 0 && !in.held
}

func (in *incoming) begun() bool {
	if in.n == 0 {
		in.look()
	}
	return in.n > 0
}

// whole reports that a request's bytes are there, or that no more will come.
func (in *incoming) whole() bool {
	if in.n < requestBytes {
		in.look()
	}
	return in.n >= requestBytes || !in.held
}

// sequence is the number of the newest request. A client writes its own at once, so the
// last bytes are one client's, also behind part of a request of one that was killed.
func (in *incoming) sequence() (uint64, error) {
	switch {
	case in.n < requestBytes:
		return 0, refusal(fmt.Sprintf("%d bytes, and not the %d of a request: % x%s", in.n, requestBytes, in.buf[:in.n], asText(in.buf[:in.n])))
	case in.n == len(in.buf):
		in.drain()
		return 0, refusal(fmt.Sprintf("more than the %d bytes of a request: not this protocol", requestBytes))
	}
	return binary.LittleEndian.Uint64(in.buf[in.n-requestBytes:]), nil
}

// drain drops what else lies in the FIFO, of which the largest is 1 MiB.
func (in *incoming) drain() {
	for range 1 << 20 / len(in.buf) {
		if n, err := unix.Read(in.fd, in.buf[:]); n <= 0 || err != nil {
			return
		}
	}
}
