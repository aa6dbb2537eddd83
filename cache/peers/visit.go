package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A visit is a connection of another node, on the side that answers.
type visit struct {
	server *Server
	conn   net.Conn
	node   string
	count  *visitorCounters
	out    *sender
	in     uint64
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

func (v *visit) request() (q request, raw [requestSize]byte, err error) {
	if err = v.conn.SetReadDeadline(time.Now().Add(v.server.limits.Idle)); err != nil {
		return q, raw, err
	}
	n, err := io.ReadFull(v.conn, raw[:])
	v.in += uint64(n)
	if err != nil {
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			err = io.EOF // it was idle for long
		}
		return q, raw, err
	}
	q, err = decodeRequest(raw)
	return q, raw, err
}

func (v *visit) answer(ctx context.Context, q request, raw [requestSize]byte) error {
	limits := &v.server.limits
	v.server.count.requests.Add(1)
	v.count.requests.Add(1)
	done, room := v.server.gate.hold(int(q.count))
	if room {
		defer done()
	}
	runs, sum, err := v.runs(q, room)
	if err != nil {
		return err
	}
	digest := xxhash.New()
	greet(digest, raw[:], sum)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v.out.begin(*digest, q.bytes, cancel)
	unwatch := v.watch(cancel)
	failure := checkRuns(runs)
	if !room {
		failure = fmt.Errorf("node %w: the requests that it has fill %d runs", meta.ErrBusy, limits.Runs)
	}
	if failure == nil {
		failure = v.fulfil(ctx, q, runs)
	}
	gone := unwatch()
	if gone != nil {
		abort(v.conn)
	}
	v.tally(failure)
	err = v.end(why(ctx, failure))
	if failure == nil && gone == nil && err == nil {
		n := total(runs)
		v.server.count.records.Add(n)
		v.count.records.Add(n)
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

// fulfil sends what is asked for when its turn has come.
func (v *visit) fulfil(ctx context.Context, q request, runs []Run) error {
	s := v.server
	s.count.queued.Add(1)
	leave, err := s.gate.enter(ctx, v.node, time.Duration(q.wait)*time.Millisecond)
	s.count.queued.Add(-1)
	if err != nil {
		return err
	}
	defer leave()
	s.count.under.Add(1)
	defer s.count.under.Add(-1)
	if q.ask == askFile {
		return v.file(ctx, q.id)
	}
	if q.kept {
		return s.store.Kept(ctx, q.id, runs, v.out.emit)
	}
	return s.store.Gather(ctx, q.id, runs, v.out.emit)
}

func (v *visit) file(ctx context.Context, hash ID) error {
	f, size, err := v.server.store.File(ctx, hash)
	if err != nil {
		return err
	}
	defer f.Close()
	v.out.expect(uint64(size))
	b := make([]byte, gathered)
	for at := int64(0); at < size; {
		n := min(int64(len(b)), size-at)
		if _, err := f.ReadAt(b[:n], at); err != nil {
			return err
		}
		if err := v.out.emit(b[:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// runs reads what follows a request, and drops it if there is no room. The sum
// is as it came.
func (v *visit) runs(q request, room bool) (runs []Run, sum []byte, err error) {
	if q.count == 0 {
		return nil, nil, nil
	}
	if err := v.conn.SetReadDeadline(time.Now().Add(v.server.limits.Ask)); err != nil {
		return nil, nil, err
	}
	if room {
		runs = make([]Run, 0, q.count)
	}
	runs, sum, err = readRuns(v.conn, int(q.count), runs)
	v.in += uint64(q.count)*runSize + sumSize
	return runs, sum, err
}

var (
	errGone  = errors.New("who asked has hung up")
	errEarly = fmt.Errorf("connection %w: it asks before it was answered", meta.ErrInvalid)
)

// watch cancels a request when its connection ends, which nobody reads
// meanwhile. What it returns ends the watch and says whether that was so.
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
