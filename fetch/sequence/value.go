package sequence

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"rankfs/meta"
)

// decodeBytes are decoded between two checks of the context.
const decodeBytes = 1 << 20

// A value is one value as it was serialised.
type value struct {
	body *bufio.Reader // nil if only its size is known
	off  int64         // in the file, or -1
	size int64         // or -1: all that body has
}

// A layout says what precedes the payload of a value.
type layout int

const (
	bare     layout = iota // nothing
	counted                // its length in four bytes
	vcounted               // its length as a vint
)

func (h Header) layout() layout {
	switch h.Value {
	case "org.apache.hadoop.io.BytesWritable":
		return counted
	case "org.apache.hadoop.io.Text":
		return vcounted
	}
	return bare
}

// payload is the number of bytes of payload in a value of size bytes; -1 if no value has
// that size.
func (l layout) payload(size int64) int64 {
	switch l {
	case counted:
		return max(-1, size-4)
	case vcounted:
		for prefix := int64(1); prefix <= min(5, size); prefix++ {
			if vintBytes(size-prefix) == prefix {
				return size - prefix
			}
		}
		return -1
	}
	return size
}

// read reads the prefix of a value, and returns the length of the payload.
func (l layout) read(r *bufio.Reader) (int64, error) {
	if l == counted {
		b, err := r.Peek(4)
		if err != nil {
			return 0, unexpected(err)
		}
		n := bigInt32(b)
		r.Discard(4) // it was peeked at
		return n, nil
	}
	n, used, err := readVint(r)
	if err == nil && n >= 0 && used != vintBytes(n) {
		err = errors.New("a length in more bytes than it takes")
	}
	return n, unexpected(err)
}

// open reads the length field, if any, before the payload of v, and returns the
// length of the payload; -1 if the rest of v.body is payload.
func (p *Split) open(v value) (int64, error) {
	want := int64(-1)
	if v.size >= 0 {
		if want = p.layout.payload(v.size); want < 0 {
			return 0, p.damaged("a value of %d bytes: no %s has that size", v.size, p.h.Value)
		}
	}
	if v.body == nil || p.layout == bare {
		return want, nil
	}
	n, err := p.layout.read(v.body)
	if err != nil {
		return 0, p.refuse(fmt.Errorf("length of a value: %w", err))
	}
	if n < 0 || want >= 0 && n != want {
		return 0, p.damaged("a value that says it has %d bytes, and takes %d with its length", n, v.size)
	}
	return n, nil
}

// measure takes values by telling each where they are.
func (p *Split) measure(each func(off, length int64) error) func(value) error {
	return func(v value) error {
		n, err := p.open(v)
		if err != nil {
			return err
		}
		if n < 0 {
			if n, err = p.drain(v.body); err != nil {
				return err
			}
		}
		off := v.off
		if off >= 0 {
			if err := p.discard(v.body, n); err != nil {
				return err
			}
			off += v.size - n
		}
		return each(off, n)
	}
}

func (p *Split) discard(r *bufio.Reader, n int64) error {
	if _, err := r.Discard(int(n)); err != nil {
		return p.refuse(unexpected(err))
	}
	return nil
}

// drain reads r to its end, and returns how much it was.
func (p *Split) drain(r *bufio.Reader) (n int64, err error) {
	for err == nil {
		var skipped int
		skipped, err = r.Discard(decodeBytes)
		n += int64(skipped)
		if ctx := p.in.stream.ctx.Err(); ctx != nil {
			return 0, ctx
		}
	}
	if err != io.EOF {
		return 0, p.refuse(err)
	}
	return n, nil
}

// A copier takes values by putting their payloads into dst.
type copier struct {
	p   *Split
	dst []byte
}

func (c *copier) take(v value) error {
	n, err := c.p.open(v)
	switch {
	case err != nil:
		return err
	case n < 0:
		return c.copyAll(v.body)
	case n > int64(len(c.dst)):
		return c.full()
	}
	for n > 0 {
		piece := c.dst[:min(n, decodeBytes)]
		if _, err := io.ReadFull(v.body, piece); err != nil {
			return c.p.refuse(fmt.Errorf("value: %w", unexpected(err)))
		}
		c.dst, n = c.dst[len(piece):], n-int64(len(piece))
		if n > 0 && c.p.in.stream.ctx.Err() != nil {
			return c.p.in.stream.ctx.Err()
		}
	}
	return nil
}

// copyAll copies all that r has.
func (c *copier) copyAll(r *bufio.Reader) error {
	for {
		if _, err := r.Peek(1); err == io.EOF {
			return nil
		} else if err != nil {
			return c.p.refuse(fmt.Errorf("value: %w", err))
		}
		if len(c.dst) == 0 {
			return c.full()
		}
		n, err := r.Read(c.dst[:min(len(c.dst), decodeBytes)])
		c.dst = c.dst[n:]
		if err == nil {
			err = c.p.in.stream.ctx.Err()
		}
		if err != nil {
			return c.p.refuse(fmt.Errorf("value: %w", err))
		}
	}
}

func (c *copier) full() error {
	return fmt.Errorf("offset %d: more than the expected bytes of values: the %w", c.p.at, meta.ErrStale)
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
