package sequence

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rankfs/meta"
)

// A Split is a range of a file, to be read once: by Scan or by Copy.
type Split struct {
	h        Header
	layout   layout
	r        io.Reader
	size     int64
	from, to int64

	in     *fileStream
	at     int64    // where the record or block being read begins
	coded  section  // what values decodes
	values *decoder // if the file is compressed
	sizes  *decoder // of values in blocks
	packed bytes.Buffer
	take   func(value) error
	bodies bool // whether take looks into values that are in blocks
}

// Split is the split [from, to) of a file of that size. The stream gives the
// file's bytes from offset from on. It is read forwards, as far as Offset
// tells afterwards and up to 256 KiB further.
func (h Header) Split(stream io.Reader, size, from, to int64) *Split {
	return &Split{h: h, layout: h.layout(), r: stream, size: size, from: from, to: min(to, size)}
}

// Offset is the place up to which the split was read. A second read of the same split needs no
// byte beyond.
func (p *Split) Offset() int64 {
	if p.in == nil {
		return p.from
	}
	return p.in.off
}

// ended returns an error if d still has bytes, compressed or decoded, to read.
func (p *Split) ended(d *decoder) error {
	if err := d.ended(); err != nil {
		return p.refuse(err)
	}
	return nil
}

// refuse wraps a decoder's error, which may mean damage, a broken stream, or a
// feature that the decoder does not have.
func (p *Split) refuse(err error) error {
	if errors.Is(err, meta.ErrInvalid) && p.in.broken() == nil {
		return fmt.Errorf("offset %d: %w", p.at, err)
	}
	return p.damaged("%v", err)
}

func (p *Split) damaged(format string, args ...any) error {
	return p.in.damaged(p.at, format, args...)
}
