package packing

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/shuffle/turns"
)

// What goes between nodes of a stage with compress= in its spec is packed, block by block: maps
// are plain where they are kept. Before a block stand its length and that which it is packed to,
// in 4 bytes each; if they are the same it is as it was. Sums are those of the plain bytes.
const (
	headBytes   = 8
	packedBlock = 128 << 10 // as zstd's own: one is packed without a window of what came before
	packedSlack = 4 << 10   // what a codec may write beyond a block that it cannot pack
)

// Blocks that do not lose one part in minGain go as they are: to unpack one takes longer than
// to send so little. After some of them in a row one in tryEach is tried.
const (
	minGain  = 32
	triedRaw = 4
	tryEach  = 16
)

// MaxPacked is the greatest length of so many bytes when they are packed.
func MaxPacked(n uint64) uint64 { return n + headBytes*(n/packedBlock+1) }

// maxPacking is how many exchanges that a node begins are packed or unpacked at a time: each
// has memory. Those that other nodes begin package wire bounds.
const maxPacking = 64

// Presses are those by which a node packs. No press is held while its holder waits.
type Presses struct {
	presses chan *press   // one for each processor
	turns   *turns.Shares // of exchanges
}

// New makes as many as there are processors.
func New() *Presses {
	n := runtime.GOMAXPROCS(0)
	k := &Presses{presses: make(chan *press, n), turns: turns.New(maxPacking)}
	for range n {
		k.presses <- new(press)
	}
	return k
}

// Turn waits for the turn of an exchange that costs so much, which lasts until give is called.
func (k *Presses) Turn(ctx context.Context, by turns.Party, cost int64) (give func(), err error) {
	return k.turns.Take(ctx, by, 1, cost)
}

// Pack calls feed with what takes so many bytes, and emits them packed.
func (k *Presses) Pack(by meta.Compression, bytes uint64, emit func([]byte) error, feed func(emit func([]byte) error) error) error {
	if by == meta.Uncompressed {
		return feed(emit)
	}
	mem, err := blockMemory()
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	p := &packer{presses: k.presses, by: by, emit: emit, left: bytes, plain: mem[:headBytes+packedBlock], packed: mem[headBytes+packedBlock:]}
	if err := feed(p.add); err != nil {
		return err
	}
	return p.end()
}

// blockMemory is memory beside the heap for a block that is plain and one that is packed.
func blockMemory() ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, 2*(headBytes+packedBlock)+packedSlack, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, meta.Worded(meta.ErrBusy, "memory to pack in: %w", err)
	}
	return mem, nil
}

// A packer packs what is added to it.
type packer struct {
	presses chan *press
	by      meta.Compression
	emit    func([]byte) error
	left    uint64 // bytes that are to be added

	plain, packed []byte // a head and a block
	n             int    // bytes of the plain one
	raw           int    // blocks in a row that went as they were
}

func (p *packer) add(b []byte) error {
	if uint64(len(b)) > p.left {
		return fmt.Errorf("data to pack %w: it is longer than was said", meta.ErrInvalid)
	}
	p.left -= uint64(len(b))
	for len(b) > 0 {
		n := copy(p.plain[headBytes+p.n:], b)
		if p.n, b = p.n+n, b[n:]; p.n == packedBlock {
			if err := p.emitBlock(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packer) end() error {
	if p.left > 0 {
		return fmt.Errorf("data to pack %w: it is %d bytes shorter than was said", meta.ErrInvalid, p.left)
	}
	if p.n == 0 {
		return nil
	}
	return p.emitBlock()
}

func (p *packer) emitBlock() error {
	block, n := p.plain[:headBytes+p.n], p.n
	p.n = 0
	if p.raw++; p.raw <= triedRaw || p.raw%tryEach == 0 {
		if is := p.press(block[headBytes:]); is > 0 && is <= n-n/minGain-1 {
			p.raw, block = 0, p.packed[:headBytes+is]
		}
	}
	binary.LittleEndian.PutUint32(block, uint32(n))
	binary.LittleEndian.PutUint32(block[4:], uint32(len(block)-headBytes))
	return p.emit(block)
}

// press packs a block, and says to how many bytes; zero if it cannot.
func (p *packer) press(plain []byte) int {
	one := <-p.presses
	defer func() { p.presses <- one }()
	return one.pack(p.by, p.packed[headBytes:], plain)
}

// A press packs and unpacks a block at a time. What it needs for that it makes when it is first
// used.
type press struct {
	lz4     *lz4.Compressor
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// pack packs a block, and says to how many bytes; zero if it cannot.
func (p *press) pack(by meta.Compression, dst, plain []byte) int {
	if by == meta.LZ4 {
		if p.lz4 == nil {
			p.lz4 = new(lz4.Compressor)
		}
		n, err := p.lz4.CompressBlock(plain, dst)
		if err != nil {
			return 0
		}
		return n
	}
	if p.encoder == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(packedBlock), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return 0
		}
		p.encoder = e
	}
	is := p.encoder.EncodeAll(plain, dst[:0:len(dst)])
	if len(is) > len(dst) {
		return 0
	}
	return len(is)
}

// unpack unpacks a block to dst, all of it or an error.
func (p *press) unpack(by meta.Compression, dst, packed []byte) (err error) {
	n := 0
	switch {
	case len(packed) == len(dst):
		n = copy(dst, packed)
	case by == meta.LZ4:
		n, err = lz4.UncompressBlock(packed, dst)
	default:
		n, err = p.unpackZstd(dst, packed)
	}
	if err == nil && n != len(dst) {
		err = fmt.Errorf("it unpacks to %d bytes, not %d", n, len(dst))
	}
	if err != nil {
		return fmt.Errorf("block that came packed %w: %w", meta.ErrCorrupt, err)
	}
	return nil
}

func (p *press) unpackZstd(dst, packed []byte) (int, error) {
	if p.decoder == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(packedBlock))
		if err != nil {
			return 0, err
		}
		p.decoder = d
	}
	plain, err := p.decoder.DecodeAll(packed, dst[:0:len(dst)])
	if err == nil && len(plain) > 0 && &plain[0] != &dst[0] {
		return 0, fmt.Errorf("it was unpacked elsewhere")
	}
	return len(plain), err
}
