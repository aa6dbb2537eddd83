package sequence

import (
	"bytes"
	"context"
	"fmt"

	"rankfs/meta"
)

const (
	// escape stands where the length of a record would, before a marker.
	escape      = -1
	markerBytes = 4 + syncBytes
)

// Scan calls each with the length of each payload, in order, and with its
// offset in the file, or -1 if it is compressed. It believes a length that stands
// in a compressed prefix; Copy checks it.
func (p *Split) Scan(ctx context.Context, each func(off, length int64) error) error {
	p.take = p.measure(each)
	return p.read(ctx)
}

// Copy fills dst with the payloads of the split, one after another. It is
// stale if they do not have the length of dst.
func (p *Split) Copy(ctx context.Context, dst []byte) error {
	c := copier{p: p, dst: dst}
	p.take, p.bodies = c.take, true
	if err := p.read(ctx); err != nil {
		return err
	}
	if len(c.dst) > 0 {
		return fmt.Errorf("values end %d bytes before the expected %d: the %w", len(c.dst), len(dst), meta.ErrStale)
	}
	return nil
}

func (p *Split) read(ctx context.Context) error {
	if p.from < 0 || p.size < p.h.Length || p.in != nil {
		return meta.Worded(meta.ErrInvalid, "bytes %d to %d of %d are no split, or were read already", p.from, p.to, p.size)
	}
	p.in = newFileStream(ctx, p.r, min(p.from, p.size), p.size)
	defer p.in.close()
	if c := p.h.codec; c != nil {
		p.values = c.get()
		defer c.put(p.values)
		if p.h.Compression == ByBlock {
			p.sizes = c.get()
			defer c.put(p.sizes)
		}
	}
	found, err := p.begin()
	if err != nil || !found {
		return err
	}
	return p.walk()
}

// begin moves to the split's first record, or the marker before it, and
// reports whether there is one.
func (p *Split) begin() (bool, error) {
	if p.from >= p.to {
		return false, nil
	}
	if err := p.in.skip(max(0, p.h.Length-p.from)); err != nil || p.from == 0 {
		return err == nil, err
	}
	return p.search()
}

// search moves to the next marker, if it begins within the split. It reads no
// further than such a marker can be.
func (p *Split) search() (bool, error) {
	marker := append([]byte{0xff, 0xff, 0xff, 0xff}, p.h.sync[:]...)
	end := min(p.size, p.to+markerBytes-1)
	for end-p.in.off >= markerBytes {
		if _, err := p.in.peek(markerBytes); err != nil {
			return false, err
		}
		b, err := p.in.peek(int(min(int64(p.in.buf.Buffered()), end-p.in.off)))
		if err != nil {
			return false, err
		}
		if i := bytes.Index(b, marker); i >= 0 {
			return true, p.in.skip(int64(i))
		}
		if err := p.in.skip(int64(len(b) - markerBytes + 1)); err != nil {
			return false, err
		}
	}
	return false, p.in.skip(max(0, end-p.in.off))
}

// walk reads records up to the marker that ends the split.
func (p *Split) walk() error {
	for p.in.off < p.size {
		p.at = p.in.off
		n, err := p.in.int32()
		switch {
		case err != nil:
			return err
		case n == escape:
			if err := p.pass(); err != nil || p.at >= p.to {
				return err
			}
			if p.h.Compression == ByBlock && p.in.off < p.size {
				err = p.block()
			}
		case p.h.Compression == ByBlock:
			return p.damaged("a block without a sync marker")
		default:
			err = p.record(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass passes the marker whose escape was read.
func (p *Split) pass() error {
	b, err := p.in.peek(syncBytes)
	if err != nil {
		return err
	}
	if !bytes.Equal(b, p.h.sync[:]) {
		return p.damaged("a sync marker that is not the file's")
	}
	return p.in.skip(syncBytes)
}

// record reads a record of n bytes that is not in a block.
func (p *Split) record(n int64) error {
	key, err := p.in.int32()
	if err != nil {
		return err
	}
	size := n - key
	if key < 0 || size < 0 || n > p.size-p.in.off {
		return p.damaged("a record of %d bytes with a key of %d, and %d left of the file", n, key, p.size-p.in.off)
	}
	if err := p.in.skip(key); err != nil {
		return err
	}
	if p.h.codec != nil {
		return p.compressed(size)
	}
	if err := p.take(value{body: p.in.buf, off: p.in.off, size: size}); err != nil {
		return err
	}
	p.in.off += size // take has read it
	return nil
}

// compressed reads the value of a record, compressed to n bytes.
func (p *Split) compressed(n int64) error {
	p.coded = section{p.in, n}
	if err := p.values.reset(&p.coded); err != nil {
		return p.refuse(err)
	}
	if err := p.take(value{body: p.values.out, off: -1, size: -1}); err != nil {
		return err
	}
	if p.bodies {
		return p.ended(p.values)
	}
	return p.in.skip(p.coded.left)
}
