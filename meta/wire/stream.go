package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A Stream is what another node pushes, as a Push reads it: one goroutine at a time.
// The node sends nothing that was not granted. No data waits in memory of the daemon:
// what was granted and is not read is on the wire, or still with the node.
//
//   - Until something is granted nothing may come, and a watch finds out whether the
//     connection ends; likewise after the end.
//   - In between only Read finds that out.
type Stream struct {
	line    *line
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unwatch func() error // nil while something may come
	bytes   uint64       // in all, 0 if that is not known
	fewer   bool         // or less than that
	pace    pace

	granted, read uint64
	frame         int   // bytes of it that are to be read
	said          error // by the node, of why there will be no more
	open, ended   bool  // something was granted; all has come
	answered      bool  // the node may ask for something else once it has sent the end
	err           error // that Read goes on to return
	broken        error // why nothing more can be read from the connection
}

func newStream(ctx context.Context, l *line, bytes uint64, sum xxhash.Digest, cancel context.CancelCauseFunc) *Stream {
	l.in.begin(sum)
	return &Stream{
		line: l, ctx: ctx, cancel: cancel, bytes: bytes, unwatch: l.watch(cancel),
		pace: pace{patience: l.ask},
	}
}

// AtMost says that no more than n bytes come of a stream whose length is not known. Then Read
// grants ahead as if so many did.
func (s *Stream) AtMost(n uint64) { s.bytes, s.fewer = n, true }

// Grant lets the node send n bytes beyond those that it may already. Without it Read
// grants no more than it has room for, and each costs the time to the node and back.
func (s *Stream) Grant(n uint64) error {
	if s.ended || n == 0 {
		return nil
	}
	if s.err != nil {
		return s.err
	}
	if n > maxBytes || s.granted-s.read > maxBytes-n {
		return fmt.Errorf("grant of %d bytes %w: a node may send %d at most", n, meta.ErrInvalid, int64(maxBytes))
	}
	if !s.open {
		if err := s.leave(); err != nil {
			return s.fail(err)
		}
		s.open = true
	}
	s.granted += n
	if err := s.line.out.grant(n); err != nil {
		return s.fail(broken(err))
	}
	return nil
}

// grantAhead is what of a stream, if it is known how long it is, or is at most, is on its way while
// what came before is read, decrypted, summed and written: the node would wait for each Read else,
// and for that its grant got past what this node sends. The buffers of a connection hold about as
// much: a node that reads nothing for a while is no node that takes nothing.
const grantAhead = 4 << 20

// Read reads what has come, and grants what p has room for beyond what is granted, and once
// something was read what is to be on its way meanwhile. P may be mapped memory. Nothing is all
// of it before Read returns io.EOF: only then the last sum was right.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.err != nil || len(p) == 0 {
		return 0, s.err
	}
	if err := s.Grant(s.lacks(uint64(len(p)))); err != nil {
		return 0, err
	}
	for s.frame == 0 && s.err == nil {
		if s.ctx.Err() != nil {
			s.err = context.Cause(s.ctx)
		} else {
			s.next()
		}
	}
	if s.err == nil {
		n = s.fill(p[:min(len(p), s.frame)])
		s.line.out.moved()
	}
	if n > 0 {
		return n, nil
	}
	return 0, s.err
}

// lacks is the number of bytes to grant before n bytes are read: not for each frame again.
func (s *Stream) lacks(n uint64) uint64 {
	may, want := s.granted-s.read, n
	if s.bytes > 0 {
		left := s.bytes - s.read
		want = min(n, left)
		if s.read > 0 {
			want = min(max(n, grantAhead), left)
		}
	}
	less := want - min(want, may)
	if may >= n && want >= grantAhead && less < grantAhead/4 {
		return 0
	}
	return less
}

// next reads the head of a frame, and all of it if it is not data.
func (s *Stream) next() {
	in := s.line.in
	h, err := in.head(s.line.ask)
	switch {
	case err != nil:
	case s.said != nil && h.kind != kindEnd:
		err = fmt.Errorf("stream %w: it goes on after it failed", meta.ErrCorrupt)
	case h.kind == kindWait:
	case h.kind == kindData:
		s.frame = int(h.length)
		err = s.expected(uint64(h.length))
	case h.kind == kindFail:
		s.said, err = in.failure(h)
	case h.kind == kindEnd:
		s.end()
	default:
		err = fmt.Errorf("stream %w: a frame of kind %d in it", meta.ErrCorrupt, h.kind)
	}
	if err != nil {
		_ = s.fail(broken(err)) // kept
	}
}

// expected reports whether n bytes more may come.
func (s *Stream) expected(n uint64) error {
	if n > s.granted-s.read {
		return fmt.Errorf("stream %w: %d bytes in it, where %d were granted", meta.ErrCorrupt, n, s.granted-s.read)
	}
	if s.bytes > 0 && n > s.bytes-s.read {
		return fmt.Errorf("stream %w: it is longer than was said", meta.ErrCorrupt)
	}
	return nil
}

func (s *Stream) end() {
	s.ended, s.err = true, io.EOF
	if !s.answered {
		s.unwatch = s.line.watch(s.cancel)
	}
	switch {
	case s.said != nil:
		s.err = s.said
	case s.read < s.bytes && !s.fewer:
		s.err = fmt.Errorf("stream %w: it is %d bytes shorter than was said", meta.ErrCorrupt, s.bytes-s.read)
	}
}

// fill reads p, which the frame has data for, as far as it goes.
func (s *Stream) fill(p []byte) (n int) {
	err := guard(meta.ErrNoSpace, func() error {
		for n < len(p) {
			if err := s.line.conn.SetReadDeadline(s.pace.wait()); err != nil {
				return err
			}
			m, err := s.line.in.some(p[n:])
			s.pace.done(m)
			n += m
			if err != nil && n < len(p) {
				return noEOF(err)
			}
		}
		return nil
	})
	s.frame -= n
	s.read += uint64(n)
	if err != nil {
		_ = s.fail(broken(err)) // kept
	}
	return n
}

// fail notes that nothing more can be read.
func (s *Stream) fail(err error) error {
	s.err, s.broken = err, err
	if errors.Is(err, meta.ErrUnavailable) {
		s.cancel(err)
	}
	return err
}

var errUnread = fmt.Errorf("stream %w: it was not read to its end", meta.ErrInvalid)

// outcome is the error of a push that returned err: no success unless all was read, or
// nothing was to be.
func (s *Stream) outcome(err error) error {
	switch {
	case err != nil:
		return err
	case s.err != nil && s.err != io.EOF:
		return s.err
	case s.open && !s.ended:
		return errUnread
	}
	return nil
}

// leave ends the watch over the connection. It returns why the connection has ended, if
// it has.
func (s *Stream) leave() error {
	if s.unwatch != nil {
		defer func() { s.unwatch = nil }()
		return s.unwatch()
	}
	if errors.Is(s.broken, meta.ErrUnavailable) {
		return s.broken
	}
	return nil
}

// drain reads what the node was still sending when it was answered, as far as its end.
func (s *Stream) drain() error {
	if !s.open || s.ended || s.broken != nil {
		return s.broken
	}
	s.answered = true
	until := time.Now().Add(s.line.ask + time.Duration((s.granted-s.read)/slowest)*time.Second)
	for !s.ended && s.broken == nil {
		if time.Now().After(until) {
			return fmt.Errorf("stream %w: it does not end after it was answered", meta.ErrInvalid)
		}
		if s.frame == 0 {
			s.next()
			continue
		}
		s.fill(s.line.in.buf[:min(len(s.line.in.buf), s.frame)])
	}
	return errors.Join(s.leave(), s.broken)
}
