package pack

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A packed slab is a head, a table of its blocks, and the blocks back to back.
// All numbers are little-endian.
//
//	head    "rkp2", bytes of a plain block (4), plain length (8), packed
//	        length (8), name (32), xxh64 of the head before it and of the
//	        table (8)
//	entry   xxh64 of the plain bytes (8), of the packed ones (8), where these
//	        begin (8), their length (4), algorithm (1), width (1), zero (2)
//
// Every byte is under a sum, and there is one way to write what it says.
const (
	magic     = "rkp2"
	headSize  = 64
	entrySize = 32
	// The bounds of what is believed of a head.
	minBlock, maxBlock = 4 << 10, 4 << 20
	maxPlain           = 1 << 40
)

// An entry describes one block.
type entry struct {
	plain, packed uint64 // sums
	at            int64
	length        int
	codec         Codec
}

func (e entry) put(b []byte) {
	binary.LittleEndian.PutUint64(b, e.plain)
	binary.LittleEndian.PutUint64(b[8:], e.packed)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.at))
	binary.LittleEndian.PutUint32(b[24:], uint32(e.length))
	b[28], b[29], b[30], b[31] = byte(e.codec.Algorithm), e.codec.Width, 0, 0
}

func parseEntry(b []byte) entry {
	return entry{
		plain:  binary.LittleEndian.Uint64(b),
		packed: binary.LittleEndian.Uint64(b[8:]),
		at:     int64(binary.LittleEndian.Uint64(b[16:])),
		length: int(binary.LittleEndian.Uint32(b[24:])),
		codec:  Codec{Algorithm(b[28]), b[29]},
	}
}

func blocksOf(plain int64, block int) int { return int((plain + int64(block) - 1) / int64(block)) }

// A packed is a packed slab whose head and table have been verified.
type packed struct {
	rope  *rope
	block int // bytes of a plain one
	plain int64
}

// A Name identifies the content of a packed slab. The sums cover it, so that a wrong
// number never leads to the bytes of another slab.
type Name [32]byte

// write packs a slab to the end of an empty rope, which the caller ends if
// that fails. Before each block on is told how many bytes were packed, and into
// how many, and may end it.
func write(a *arena, r *rope, presses chan *press, block int, name Name, plain []byte, c Codec, on func(from, into int64) error) error {
	v := packed{r, block, int64(len(plain))}
	if err := a.grow(r, headSize+v.blocks()*entrySize); err != nil {
		return err
	}
	for i := range v.blocks() {
		if err := on(v.start(i), r.length); err != nil {
			return err
		}
		p := <-presses
		err := v.add(a, p, i, plain[v.start(i):][:v.size(i)], c)
		presses <- p
		if err != nil {
			return err
		}
	}
	head := r.inFrame(0, headSize)
	copy(head, magic)
	binary.LittleEndian.PutUint32(head[4:], uint32(v.block))
	binary.LittleEndian.PutUint64(head[8:], uint64(v.plain))
	binary.LittleEndian.PutUint64(head[16:], uint64(r.length))
	copy(head[24:], name[:])
	binary.LittleEndian.PutUint64(head[headSize-8:], v.headSum())
	return nil
}

// add packs the next block.
func (v packed) add(a *arena, p *press, i int, plain []byte, c Codec) error {
	b, c, err := p.pack(plain, c)
	if err != nil {
		return err
	}
	at := v.rope.length
	if err := a.grow(v.rope, len(b)); err != nil {
		return err
	}
	v.rope.write(b, at)
	e := entry{xxhash.Sum64(plain), xxhash.Sum64(b), at, len(b), c}
	e.put(v.rope.inFrame(entryAt(i), entrySize))
	return nil
}

// headSum is the sum of the head before it, and of the table.
func (v packed) headSum() uint64 {
	d := xxhash.New()
	_, _ = d.Write(v.rope.inFrame(0, headSize-8))
	end := entryAt(v.blocks())
	for off := int64(headSize); off < end; {
		b := v.rope.inFrame(off, int(min(end-off, frameBytes)))
		_, _ = d.Write(b)
		off += int64(len(b))
	}
	return d.Sum64()
}

// trim gives a rope that was kept the length that its head tells, if that ends
// in its last page.
func (r *rope) trim() {
	n := int64(binary.LittleEndian.Uint64(r.inFrame(16, 8)))
	if n >= headSize && n <= r.real && int64(pages(int(n))) == r.real {
		r.length = n
	}
}

// parse checks the head and table of a packed slab whose blocks are to have at
// most so many plain bytes. What it returns leads to no byte outside of the
// rope, and to each block once.
func parse(r *rope, largest int) (packed, error) {
	if r.length < headSize || !bytes.Equal(r.inFrame(0, 4), []byte(magic)) {
		return packed{}, fmt.Errorf("packed slab of %d bytes: no head: %w", r.length, meta.ErrCorrupt)
	}
	head := r.inFrame(0, headSize)
	block, plain := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint64(head[8:])
	length := binary.LittleEndian.Uint64(head[16:])
	if block < minBlock || int64(block) > int64(largest) || plain > maxPlain || length != uint64(r.length) {
		return packed{}, fmt.Errorf("packed slab of %d bytes: head: %w", r.length, meta.ErrCorrupt)
	}
	v := packed{r, int(block), int64(plain)}
	if entryAt(v.blocks()) > r.length {
		return v, fmt.Errorf("packed slab of %d bytes: table of %d blocks: %w", r.length, v.blocks(), meta.ErrCorrupt)
	}
	if v.headSum() != binary.LittleEndian.Uint64(head[headSize-8:]) {
		return v, fmt.Errorf("packed slab of %d bytes: sum of its table: %w", r.length, meta.ErrCorrupt)
	}
	return v, v.check()
}

// check refuses a table that contradicts itself, although its sum is right.
func (v packed) check() error {
	at := entryAt(v.blocks())
	for i := range v.blocks() {
		e, size := v.entry(i), v.size(i)
		fits := e.length > 0 && e.length < size && e.codec.Algorithm != Raw ||
			e.length == size && e.codec.Algorithm == Raw && e.plain == e.packed
		rest := v.rope.inFrame(entryAt(i), entrySize)[30:]
		if e.at != at || !fits || !e.codec.valid() || rest[0] != 0 || rest[1] != 0 {
			return fmt.Errorf("packed slab: entry of block %d: %w", i, meta.ErrCorrupt)
		}
		at += int64(e.length)
	}
	if at != v.rope.length {
		return fmt.Errorf("packed slab: blocks end at %d of %d: %w", at, v.rope.length, meta.ErrCorrupt)
	}
	return nil
}

func entryAt(i int) int64          { return headSize + int64(i)*entrySize }
func (v packed) name() Name        { return Name(v.rope.inFrame(24, len(Name{}))) }
func (v packed) blocks() int       { return blocksOf(v.plain, v.block) }
func (v packed) start(i int) int64 { return int64(i) * int64(v.block) }
func (v packed) size(i int) int    { return int(min(int64(v.block), v.plain-v.start(i))) }
func (v packed) entry(i int) entry { return parseEntry(v.rope.inFrame(entryAt(i), entrySize)) }

// read unpacks block i into dst, which has its size, and checks both sums.
func (v packed) read(p *press, i int, dst []byte) error {
	e := v.entry(i)
	b := v.rope.read(p.joined, e.at, e.length)
	if xxhash.Sum64(b) != e.packed {
		return fmt.Errorf("packed slab: block %d: sum of its %d packed bytes: %w", i, len(b), meta.ErrCorrupt)
	}
	if err := p.unpack(dst, b, e.codec); err != nil {
		return fmt.Errorf("packed slab: block %d: unpack %v: %w: %w", i, e.codec, err, meta.ErrCorrupt)
	}
	if xxhash.Sum64(dst) != e.plain {
		return fmt.Errorf("packed slab: block %d: sum of its %d bytes: %w", i, len(dst), meta.ErrCorrupt)
	}
	return nil
}
