package pack

import (
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// An Algorithm is a way to compress. The numbers are those in a packed slab.
type Algorithm uint8

const (
	Raw Algorithm = iota
	S2
	S2Better
	ZstdFastest
	ZstdDefault
	algorithms // how many there are
)

var algorithmNames = [algorithms]string{"raw", "s2", "s2-better", "zstd-fastest", "zstd"}

func (a Algorithm) String() string {
	if a >= algorithms {
		return fmt.Sprintf("algorithm %d", uint8(a))
	}
	return algorithmNames[a]
}

// A Codec says how a slab is packed. With a Width of 2, 4 or 8 the slab is
// taken for numbers of so many bytes, whose bytes are sorted by place before
// they are compressed. The zero Codec stores as is.
type Codec struct {
	Algorithm Algorithm
	Width     uint8
}

func (c Codec) String() string {
	if c.Width == 0 {
		return c.Algorithm.String()
	}
	return fmt.Sprintf("%v/%d", c.Algorithm, c.Width)
}

// valid reports whether blocks may say so of themselves.
func (c Codec) valid() bool {
	switch c.Width {
	case 0:
		return c.Algorithm < algorithms
	case 2, 4, 8:
		return c.Algorithm > Raw && c.Algorithm < algorithms
	}
	return false
}

// Codecs are the codecs worth trying. Shuffled floats shrink to half where plain
// ones do not at all, and to nine tenths, or more than unshuffled, where LZ finds
// whole values again: no rule replaces trying. Bits sorted by place gained
// another 10 per cent on one set of eleven; zstd's better levels pack 100 MB/s
// and gain as little. Both were left out.
func Codecs() []Codec {
	var all []Codec
	for _, width := range []uint8{0, 2, 4, 8} {
		for a := Raw + 1; a < algorithms; a++ {
			all = append(all, Codec{a, width})
		}
	}
	return all
}

// A press packs and unpacks blocks with buffers of its own, one at a time.
// zstd's own tables, which hold at most two blocks, are made when first used.
type press struct {
	block    int
	mem      []byte // these:
	shuffled []byte // a block, sorted by place
	out      []byte // what a block is packed into, or unpacked into if not all of it is wanted
	joined   []byte // the packed bytes of a block that lies in two frames
	encoders [algorithms]*zstd.Encoder
	decoder  *zstd.Decoder
}

func newPress(block int) (*press, error) {
	size := pages(block)
	mem, err := mapBytes(2*size + pages(s2.MaxEncodedLen(block)+slack))
	if err != nil {
		return nil, err
	}
	return &press{block: block, mem: mem, shuffled: mem[:size:size], joined: mem[size : 2*size : 2*size], out: mem[2*size:]}, nil
}

// slack bytes are the most that zstd writes past a block that it cannot compress: a header,
// and three bytes for each 128 KiB. s2 needs more.
const slack = 4 << 10

func (p *press) close() error {
	for _, e := range p.encoders {
		if e != nil {
			_ = e.Close() // nothing was streamed
		}
	}
	if p.decoder != nil {
		p.decoder.Close()
	}
	return unmapBytes(p.mem)
}

// pack returns the packed form of a block, which is valid until the next call
// or plain itself, and the codec that it really has.
func (p *press) pack(plain []byte, c Codec) ([]byte, Codec, error) {
	from := plain
	if c.Width > 0 {
		from = p.shuffled[:len(plain)]
		shuffle(from, plain, int(c.Width))
	}
	packed := plain
	switch c.Algorithm {
	case S2:
		packed = s2.Encode(p.out, from)
	case S2Better:
		packed = s2.EncodeBetter(p.out, from)
	case ZstdFastest, ZstdDefault:
		e, err := p.encoder(c.Algorithm)
		if err != nil {
			return nil, c, err
		}
		packed = e.EncodeAll(from, p.out[:0])
	}
	if len(packed) >= len(plain)-len(plain)/minGain {
		return plain, Codec{}, nil
	}
	return packed, c, nil
}

// minGain: a block that does not lose this part of its length is stored as is,
// since copying it is twenty times as fast as unpacking it.
const minGain = 32

func (p *press) encoder(a Algorithm) (*zstd.Encoder, error) {
	if p.encoders[a] == nil {
		level := zstd.SpeedDefault
		if a == ZstdFastest {
			level = zstd.SpeedFastest
		}
		window := 1 << 10
		for window < p.block {
			window *= 2
		}
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("pack with %v: %w", a, err)
		}
		p.encoders[a] = e
	}
	return p.encoders[a], nil
}

// unpack writes the plain form of a block to dst, which is as long as that, or
// returns an error. It never writes past dst, whatever packed is.
func (p *press) unpack(dst, packed []byte, c Codec) error {
	to := dst
	if c.Width > 0 {
		to = p.shuffled[:len(dst)]
	}
	to = to[:len(to):len(to)]
	var n int
	var err error
	switch c.Algorithm {
	case Raw:
		n = copy(to, packed)
		if len(packed) != len(to) {
			n = len(packed)
		}
	case S2, S2Better:
		n, err = unpackS2(to, packed)
	default:
		n, err = p.unpackZstd(to, packed)
	}
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("%d bytes, not %d", n, len(dst))
	}
	if c.Width > 0 {
		unshuffle(dst, to, int(c.Width))
	}
	return nil
}

// unpackS2 looks at the length first: the library would allocate it.
func unpackS2(dst, packed []byte) (int, error) {
	n, err := s2.DecodedLen(packed)
	if err != nil || n != len(dst) {
		return n, err
	}
	_, err = s2.Decode(dst, packed)
	return n, err
}

func (p *press) unpackZstd(dst, packed []byte) (int, error) {
	if p.decoder == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(uint64(p.block)))
		if err != nil {
			return 0, err
		}
		p.decoder = d
	}
	plain, err := p.decoder.DecodeAll(packed, dst[:0])
	if err == nil && len(plain) > 0 && &plain[0] != &dst[0] {
		return 0, fmt.Errorf("unpacked elsewhere")
	}
	return len(plain), err
}
