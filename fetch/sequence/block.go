package sequence

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"rankfs/meta"
)

const (
	// maxSizes bounds the compressed lengths of one block's values, which
	// are kept while its values are read. A block of Hadoop's default size,
	// 1 MB, has some kilobytes of them.
	maxSizes = 16 << 20
	// maxRecords bounds the records of one block: a compressed list of
	// lengths may expand a thousandfold.
	maxRecords = 1 << 24
	// maxValues bounds the bytes of a block's values, as a Java array does.
	maxValues = math.MaxInt32
)

// block reads a block. Its marker is followed by the number of records and four
// buffers, each compressed: lengths of keys, keys, lengths of values, values.
func (p *Split) block() error {
	count, err := p.in.vint()
	if err != nil {
		return err
	}
	if count < 0 || count > maxRecords {
		return p.damaged("a block of %d records, at most %d", count, maxRecords)
	}
	for range 2 { // keys are not wanted
		n, err := p.buffer()
		if err != nil {
			return err
		}
		if err := p.in.skip(n); err != nil {
			return err
		}
	}
	if err := p.readSizes(); err != nil {
		return err
	}
	n, err := p.buffer()
	if err != nil {
		return err
	}
	if p.bodies {
		return p.blockBodies(count, n)
	}
	total, err := p.blockValues(count, value{off: -1})
	if err != nil {
		return err
	}
	return p.passValues(n, total)
}

// buffer returns the length of the buffer that follows.
func (p *Split) buffer() (int64, error) {
	n, err := p.in.vint()
	if err != nil {
		return 0, err
	}
	if n < 0 || n > p.size-p.in.off {
		return 0, p.damaged("a buffer of %d bytes, and %d left of the file", n, p.size-p.in.off)
	}
	return n, nil
}

// readSizes makes p.sizes ready to decode the lengths of the block's values.
// They are read into memory, as the stream will go on to the values.
func (p *Split) readSizes() error {
	n, err := p.buffer()
	if err != nil {
		return err
	}
	if n > maxSizes {
		return meta.Worded(meta.ErrInvalid, "offset %d: a block has %d bytes of lengths, and may have %d: write the file with a smaller io.seqfile.compress.blocksize", p.at, n, maxSizes)
	}
	p.packed.Reset()
	if _, err := io.CopyN(&p.packed, p.in, n); err != nil {
		return p.refuse(err)
	}
	if err := p.sizes.reset(bytes.NewReader(p.packed.Bytes())); err != nil {
		return p.refuse(err)
	}
	return nil
}

// blockBodies has a block's values taken from the n bytes that follow.
func (p *Split) blockBodies(count, n int64) error {
	p.coded = section{p.in, n}
	if err := p.values.reset(&p.coded); err != nil {
		return p.refuse(err)
	}
	if _, err := p.blockValues(count, value{body: p.values.out, off: -1}); err != nil {
		return err
	}
	return p.ended(p.values)
}

// passValues passes over the n bytes of a block's values, total when decoded. Where
// those may be in frames that are too large, the first one is decoded, which no other
// exceeds: what Copy cannot read is refused by Scan.
func (p *Split) passValues(n, total int64) error {
	if total <= maxFrame {
		return p.in.skip(n)
	}
	p.coded = section{p.in, n}
	if err := p.values.reset(&p.coded); err != nil {
		return p.refuse(err)
	}
	if _, err := p.values.out.Peek(1); err != nil {
		return p.refuse(fmt.Errorf("values: %w", unexpected(err)))
	}
	return p.in.skip(p.coded.left)
}

// blockValues has the values of a block taken, each v with a size, and returns the sum
// of the sizes.
func (p *Split) blockValues(count int64, v value) (total int64, err error) {
	for range count {
		size, _, err := readVint(p.sizes.out)
		if err != nil {
			return 0, p.refuse(fmt.Errorf("lengths of values: %w", unexpected(err)))
		}
		v.size = size
		if total += v.size; v.size < 0 || total > maxValues {
			return 0, p.damaged("a value of %d bytes in a block of %d or more", v.size, total)
		}
		if err := p.take(v); err != nil {
			return 0, err
		}
	}
	return total, p.ended(p.sizes)
}
