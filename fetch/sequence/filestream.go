package sequence

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"

	"rankfs/meta"
)

// bufferBytes are read from a stream at once: enough that a system call costs
// nothing, little enough to stay in the processor's cache.
const bufferBytes = 256 << 10

// A fileStream is a file from some offset on, read forwards and once.
type fileStream struct {
	stream stream
	buf    *bufio.Reader
	off    int64 // of the next byte
	size   int64 // of the file
}

func newFileStream(ctx context.Context, r io.Reader, off, size int64) *fileStream {
	in := &fileStream{stream: stream{ctx: ctx, r: r, left: size - off}, off: off, size: size}
	in.buf = buffers.Get().(*bufio.Reader)
	in.buf.Reset(&in.stream)
	return in
}

// buffers holds the buffers of closed streams for reuse.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferBytes) }}

func (in *fileStream) close() {
	in.buf.Reset(nil)
	buffers.Put(in.buf)
	in.buf = nil
}

// A stream is the source of a fileStream. It remembers its error: a decoder's error
// after it is a consequence, and does not mean that the file is damaged.
type stream struct {
	ctx  context.Context
	r    io.Reader
	left int64 // until the end of the file
	err  error
}

func (s *stream) Read(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if s.left > 0 {
		s.err = unexpected(err)
	}
	return n, s.err
}

// broken is the error of the stream, if it has one.
func (in *fileStream) broken() error {
	switch err := in.stream.err; err {
	case nil:
		return nil
	case io.ErrUnexpectedEOF:
		return fmt.Errorf("the stream ends at offset %d of %d: %w: it %w", in.size-in.stream.left, in.size, err, meta.ErrCorrupt)
	default:
		return fmt.Errorf("read near offset %d: %w", in.off, err)
	}
}

func (in *fileStream) damaged(at int64, format string, args ...any) error {
	if err := in.broken(); err != nil {
		return err
	}
	return fmt.Errorf("offset %d: %w: it %w", at, fmt.Errorf(format, args...), meta.ErrCorrupt)
}

// Read reads without regard to the lengths that the file states.
func (in *fileStream) Read(p []byte) (int, error) {
	n, err := in.buf.Read(p)
	in.off += int64(n)
	return n, err
}

// peek returns the next n bytes, a few, and leaves them where they are.
func (in *fileStream) peek(n int) ([]byte, error) {
	b, err := in.buf.Peek(n)
	if err != nil {
		return nil, in.damaged(in.off, "the file ends where %d more bytes are needed", n)
	}
	return b, nil
}

func (in *fileStream) int32() (int64, error) {
	b, err := in.peek(4)
	if err != nil {
		return 0, err
	}
	n := bigInt32(b)
	return n, in.skip(4)
}

func (in *fileStream) vint() (int64, error) {
	n, used, err := readVint(in.buf)
	in.off += used
	if err != nil {
		return 0, in.damaged(in.off, "a length: %v", unexpected(err))
	}
	return n, nil
}

// skip passes over n bytes, which must not be negative.
func (in *fileStream) skip(n int64) error {
	if n > in.size-in.off {
		return in.damaged(in.off, "%d bytes, but %d are left of the file", n, in.size-in.off)
	}
	for n > 0 {
		skipped, err := in.buf.Discard(int(min(n, 1<<30)))
		in.off += int64(skipped)
		if err != nil {
			return in.damaged(in.off, "%v", unexpected(err))
		}
		n -= int64(skipped)
	}
	return nil
}

// A section is the next bytes of a fileStream.
type section struct {
	in   *fileStream
	left int64
}

func (s *section) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.in.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}
