package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A visit is a connection of another node, on the side that answers.
type visit struct {
	line
	server *Server
	node   string
	count  *counters
}

// serve answers one request after the other. Its error is why there can be no
// further one.
func (v *visit) serve(ctx context.Context) error {
	for {
		q, raw, err := v.request()
		if err != nil {
			return err
		}
		if err := v.answer(ctx, q, raw); err != nil {
			return err
		}
	}
}

func (v *visit) request() (q header, raw [requestSize]byte, err error) {
	if err = v.conn.SetReadDeadline(time.Now().Add(v.server.limits.Idle)); err != nil {
		return q, raw, err
	}
	n, err := io.ReadFull(v.conn, raw[:])
	v.in.in += uint64(n)
	if err != nil {
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			err = io.EOF // it was idle for long
		}
		return q, raw, err
	}
	q, err = decodeHeader(raw)
	return q, raw, err
}

// answer reads the rest of a request, has its handler serve it, and ends the answer. A request
// that is refused, or whose handler fails, is read to its end all the same, as is what was pushed:
// then the connection is in step, and serves the next. Only an error of the connection ends it.
func (v *visit) answer(ctx context.Context, q header, raw [requestSize]byte) error {
	v.server.count.requests.Add(1)
	v.count.requests.Add(1)
	done, room := v.server.room.hold((q.follows() + runSize - 1) / runSize)
	if room {
		defer done()
	}
	runs, body, sum, err := v.rest(q, room)
	if err != nil {
		return err
	}
	var digest xxhash.Digest
	greet(&digest, raw[:], sum)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	call, known := v.server.handlers[q.call]
	answered, pushed := q.bytes, uint64(0)
	if call.pushed {
		answered, pushed = pushed, answered
	}
	v.out.begin(digest, answered, cancel)
	in := newStream(ctx, &v.line, pushed, digest, cancel)
	failure := checkRuns(runs)
	if !room {
		failure = fmt.Errorf("node %w: the requests that it has fill %d runs", meta.ErrBusy, v.server.limits.Runs)
	}
	if failure == nil && !known {
		failure = meta.Worded(errors.ErrUnsupported, "call %d is not known to this node: its release is older than the one that asks", q.call)
	}
	if failure == nil {
		failure = v.fulfil(ctx, call, q.request(runs, body), in)
	}
	gone := in.leave()
	if gone != nil {
		abort(v.conn)
	}
	v.tally(failure)
	v.received()
	if err = v.end(why(ctx, failure)); err == nil {
		err = in.drain()
	}
	if failure == nil && gone == nil && err == nil {
		n := total(runs)
		v.server.count.items.Add(n)
		v.count.items.Add(n)
	}
	return errors.Join(gone, err)
}

func (v *visit) end(failure error) error {
	sent, err := v.out.end(failure)
	v.server.count.out.Add(sent)
	v.count.out.Add(sent)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		v.server.count.slow.Add(1)
	}
	return err
}

// received counts what has come in since it was last counted.
func (v *visit) received() {
	v.server.count.in.Add(v.in.in)
	v.count.in.Add(v.in.in)
	v.in.in = 0
}

func (v *visit) tally(failure error) {
	count := &v.server.count
	if failure == nil {
		return
	}
	if errors.Is(failure, meta.ErrBusy) {
		count.busy.Add(1)
		v.count.busy.Add(1)
		return
	}
	count.failed.Add(1)
	v.count.failed.Add(1)
	v.server.limits.Log.Debug("request of another node failed", "node", v.node, "cause", failure)
}

// fulfil does what is asked for when its turn has come.
func (v *visit) fulfil(ctx context.Context, call handler, q Request, in *Stream) error {
	s := v.server
	s.count.queued.Add(1)
	leave, err := call.gate.enter(ctx, v.node, q.Wait)
	s.count.queued.Add(-1)
	if err != nil {
		return err
	}
	defer leave()
	s.count.under.Add(1)
	defer s.count.under.Add(-1)
	return call.do(ctx, q, in, Answer{v.out})
}

// rest reads what follows the header of a request: runs, which are dropped if there is no room, or
// a body; and their sum, which is not checked yet.
func (v *visit) rest(q header, room bool) (runs []Run, body, sum []byte, err error) {
	if q.count == 0 {
		return nil, nil, nil, nil
	}
	if err := v.conn.SetReadDeadline(time.Now().Add(v.ask)); err != nil {
		return nil, nil, nil, err
	}
	v.in.in += uint64(q.follows() + sumSize)
	if q.body {
		body, sum, err = readBody(v.conn, int(q.count))
		return nil, body, sum, err
	}
	if room {
		runs = make([]Run, 0, q.count)
	}
	runs, sum, err = readRuns(v.conn, int(q.count), runs)
	return runs, nil, sum, err
}
