package state

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A snapshot is
//
//	"rankfsst", version (4 bytes)
//	frames: tag (1 byte), length (4 bytes), so many bytes
//	the frame of tagEnd, with the number of bytes up to here (8 bytes)
//	xxh64 of all bytes up to here (8 bytes)
//
// numbers being little-endian. A later version has the same frames, so that
// damage can be told from an older release that reads it.
//
// A snapshot goes to nodes that may be of the release before, so it is of the
// version that goes with the version of commands that the cluster takes: see snapshotOf.
const (
	magic    = "rankfsst"
	maxFrame = 32 << 20 // the nodes of a plan of MaxRanks ranks
)

// A tag says what a frame has. Those of a section are in its restore.
type tag byte

const (
	tagEnd     tag = 0
	tagApplied tag = 'a'
	tagHeader  tag = 'i'
)

// A frameWriter writes frames, and stops at the first error.
type frameWriter struct {
	w   io.Writer
	sum *xxhash.Digest
	n   int64
	err error
}

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{w: w, sum: xxhash.New()}
}

func (f *frameWriter) write(p []byte) {
	if f.err != nil {
		return
	}
	f.sum.Write(p)
	n, err := f.w.Write(p)
	f.n += int64(n)
	f.err = err
}

func (f *frameWriter) frame(t tag, payload []byte) {
	head := binary.LittleEndian.AppendUint32([]byte{byte(t)}, uint32(len(payload)))
	f.write(head)
	f.write(payload)
}

func (f *frameWriter) json(t tag, v any) {
	b, err := json.Marshal(v)
	if err != nil && f.err == nil {
		f.err = err
	}
	f.frame(t, b)
}

func (f *frameWriter) begin(version int) {
	f.write(binary.LittleEndian.AppendUint32([]byte(magic), uint32(version)))
}

func (f *frameWriter) end() {
	f.frame(tagEnd, binary.LittleEndian.AppendUint64(nil, uint64(f.n)))
	f.write(binary.LittleEndian.AppendUint64(nil, f.sum.Sum64()))
}

// A frameReader reads what a frameWriter wrote.
type frameReader struct {
	r   *bufio.Reader
	sum *xxhash.Digest
	n   uint64
	buf []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 1<<16), sum: xxhash.New()}
}

// take reads so many bytes, valid until the next call. It allocates no more
// than twice the bytes that are left, whatever n says.
func (f *frameReader) take(n int) ([]byte, error) {
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		have := len(f.buf)
		f.buf = append(f.buf, make([]byte, min(n-have, max(have, 1<<16)))...)
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			return nil, cut(err)
		}
	}
	f.sum.Write(f.buf)
	f.n += uint64(n)
	return f.buf, nil
}

// cut calls an early end what it is, and other errors by their own name.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends early", meta.ErrCorrupt)
	}
	return err
}

// begin returns the version.
func (f *frameReader) begin() (int, error) {
	b, err := f.take(len(magic) + 4)
	if err != nil {
		return 0, err
	}
	if string(b[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: it does not begin as one", meta.ErrCorrupt)
	}
	return int(binary.LittleEndian.Uint32(b[len(magic):])), nil
}

// next returns the next frame, the last one being of tagEnd.
func (f *frameReader) next() (tag, []byte, error) {
	before := f.n
	head, err := f.take(5)
	if err != nil {
		return 0, nil, err
	}
	t, length := tag(head[0]), binary.LittleEndian.Uint32(head[1:])
	if length > maxFrame || t == tagEnd && length != 8 {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", meta.ErrCorrupt, length)
	}
	payload, err := f.take(int(length))
	if err == nil && t == tagEnd {
		err = f.end(before, binary.LittleEndian.Uint64(payload))
	}
	return t, payload, err
}

// end checks that the snapshot is whole.
func (f *frameReader) end(before, length uint64) error {
	sum := f.sum.Sum64()
	b, err := f.take(8)
	if err != nil {
		return err
	}
	if length != before || binary.LittleEndian.Uint64(b) != sum {
		return fmt.Errorf("%w: its checksum differs", meta.ErrCorrupt)
	}
	if _, err := f.r.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: something follows it", meta.ErrCorrupt)
	}
	return nil
}
