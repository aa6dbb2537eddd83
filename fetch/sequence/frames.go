package sequence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"rankfs/meta"
)

// maxFrame bounds a frame, compressed and not. Hadoop compresses 256 KiB at
// once unless it is told otherwise.
const maxFrame = 4 << 20

// frames undo the framing that Hadoop puts around codecs that know only
// blocks in memory: the length of a group before it was compressed; then,
// until they give that length, the length of a frame and the frame.
type frames struct {
	block block

	src    *bufio.Reader
	left   int    // of the group, as it was
	packed []byte // a frame
	plain  []byte // the frame, decoded
	rest   []byte // of plain: not yet read
}

// A block is a codec that knows only blocks in memory.
type block interface {
	// bound is the most bytes that src may decode to.
	bound(src []byte) int
	// decode fills dst from its beginning, and fails with errLong if the result does
	// not fit. After an error the contents of dst are undefined.
	decode(dst, src []byte) (int, error)
}

func (c *frames) reset(r *bufio.Reader) error {
	c.src, c.left, c.rest = r, 0, nil
	return nil
}

// Read decodes a frame straight into p if it certainly fits there.
func (c *frames) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
		if c.left == 0 {
			continue
		}
		room := min(c.left, c.block.bound(c.packed))
		if room <= len(p) {
			n, err := c.unpack(p[:room])
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		c.plain = atLeast(c.plain, min(room, maxFrame))
		n, err := c.unpack(c.plain[:min(room, maxFrame)])
		if err != nil {
			return 0, err
		}
		c.rest = c.plain[:n]
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next reads the next frame, or an empty group.
func (c *frames) next() error {
	if c.left == 0 {
		n, err := c.length()
		if c.left = n; err != nil || n == 0 {
			return err
		}
	}
	n, err := c.length()
	if err != nil {
		return unexpected(err)
	}
	if n > maxFrame {
		return meta.Worded(meta.ErrInvalid, "a frame has %d bytes, and may have %d: %s", n, maxFrame, smaller)
	}
	c.packed = atLeast(c.packed, n)[:n]
	_, err = io.ReadFull(c.src, c.packed)
	return unexpected(err)
}

// length reads the length of a group or frame.
func (c *frames) length() (int, error) {
	b, err := c.src.Peek(4)
	if err != nil {
		if len(b) > 0 {
			err = unexpected(err)
		}
		return 0, err
	}
	n := bigInt32(b)
	c.src.Discard(4) // it was peeked at
	if n < 0 {
		return 0, fmt.Errorf("a frame of %d bytes", n)
	}
	return int(n), nil
}

func (c *frames) unpack(dst []byte) (int, error) {
	n, err := c.block.decode(dst, c.packed)
	if errors.Is(err, errLong) && len(dst) < c.left { // the group has room for it
		return 0, meta.Worded(meta.ErrInvalid, "a frame has more than %d bytes when it is unpacked: %s", len(dst), smaller)
	}
	c.left -= n
	return n, err
}

// smaller is the remedy for a frame that is too large.
const smaller = "write the file with a smaller buffer of the codec"

var errLong = errors.New("a frame longer than it should be")

// atLeast is b, or a new one, with room for n bytes.
func atLeast(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:cap(b)]
}

type snappyBlock struct{}

// bound is a guess if src is no Snappy; then decode says so.
func (snappyBlock) bound(src []byte) int {
	n, _ := s2.DecodedLen(src)
	return n
}

func (snappyBlock) decode(dst, src []byte) (int, error) {
	n, err := s2.DecodedLen(src)
	if err == nil && n > len(dst) {
		err = errLong
	}
	if err != nil {
		return 0, err
	}
	if _, err := s2.Decode(dst[:n:n], src); err != nil {
		return 0, err
	}
	return n, nil
}

type lz4Block struct{}

var (
	errLz4     = errors.New("LZ4: damaged block")
	errLz4Long = fmt.Errorf("LZ4: %w", errLong)
)

func (lz4Block) bound(src []byte) int { return 255 * len(src) }

// decode decodes a block, a row of sequences: lengths, literals, and how far
// back and how much is to be repeated. The last one has literals only.
func (lz4Block) decode(dst, src []byte) (int, error) {
	d, s := 0, 0
	for s < len(src) {
		token := src[s]
		n, next, ok := lz4Length(src, s+1, int(token>>4))
		if s = next; !ok || n > len(src)-s {
			return 0, errLz4
		}
		if n > len(dst)-d {
			return 0, errLz4Long
		}
		copyShort(dst[d:], src[s:], n)
		d, s = d+n, s+n
		if s == len(src) {
			return d, nil
		}
		if len(src)-s < 2 {
			return 0, errLz4
		}
		back := int(binary.LittleEndian.Uint16(src[s:]))
		n, next, ok = lz4Length(src, s+2, int(token&15))
		n += 4
		if s = next; !ok || back == 0 || back > d {
			return 0, errLz4
		}
		if n > len(dst)-d {
			return 0, errLz4Long
		}
		repeat(dst[d-back:], back, n)
		d += n
	}
	return 0, errLz4
}

// lz4Length is n, or, if n is the largest number of four bits, n plus the bytes that
// extend it from s on. It returns the offset behind them too.
func lz4Length(src []byte, s, n int) (int, int, bool) {
	if n < 15 {
		return n, s, true
	}
	for s < len(src) {
		b := src[s]
		n, s = n+int(b), s+1
		if b < 255 {
			return n, s, true
		}
	}
	return 0, s, false
}

// copyShort copies n bytes, and if they are few and there is room 16, which
// takes two instructions.
func copyShort(dst, src []byte, n int) {
	if n <= 16 && len(dst) >= 16 && len(src) >= 16 {
		copy(dst[:16], src[:16])
		return
	}
	copy(dst[:n], src)
}

// repeat writes n bytes behind the first back bytes of b, which it repeats.
func repeat(b []byte, back, n int) {
	if back >= 16 && n <= 16 && len(b) >= back+16 {
		copy(b[back:back+16], b[:16])
		return
	}
	for end := back + n; back < end; {
		back += copy(b[back:end], b[:back])
	}
}
