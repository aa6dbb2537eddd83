package sequence

import (
	"bufio"
	"fmt"
	"io"

	"rankfs/meta"
)

// decodeBytes are decoded between two checks of the context.
const decodeBytes = 1 << 20

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
