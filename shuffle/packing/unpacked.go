package packing

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// An unpacker unpacks what another node has packed, as it comes. It believes nothing of it:
// what is not so many bytes in the end is corrupt.
type unpacker struct {
	presses chan *press
	by      meta.Compression
	left    uint64 // bytes that are to come

	mem           []byte
	plain, packed []byte // a head and a block
	got, want     int    // bytes of the packed one
}

func (k *Presses) unpacker(by meta.Compression, bytes uint64) (*unpacker, error) {
	mem, err := blockMemory()
	if err != nil {
		return nil, err
	}
	return &unpacker{presses: k.presses, by: by, left: bytes, mem: mem, plain: mem[:packedBlock], packed: mem[packedBlock:][:headBytes+packedBlock], want: headBytes}, nil
}

func (u *unpacker) close() { unix.Munmap(u.mem) }

// room is where what comes next belongs.
func (u *unpacker) room() []byte { return u.packed[u.got:u.want] }

// filled says that n bytes of that came. With the last of a block it returns that, which is
// there until more comes.
func (u *unpacker) filled(n int) (block []byte, err error) {
	u.got += n
	switch {
	case u.got < u.want:
		return nil, nil
	case u.want == headBytes:
		return nil, u.head()
	}
	block = u.plain[:binary.LittleEndian.Uint32(u.packed)]
	one := <-u.presses
	defer func() { u.presses <- one }()
	if err := one.unpack(u.by, block, u.packed[headBytes:u.got]); err != nil {
		return nil, err
	}
	u.left -= uint64(len(block))
	u.got, u.want = 0, headBytes
	return block, nil
}

func (u *unpacker) head() error {
	plain, packed := binary.LittleEndian.Uint32(u.packed), binary.LittleEndian.Uint32(u.packed[4:])
	switch {
	case packed == 0 || packed > plain || plain > packedBlock:
		return fmt.Errorf("block that came packed %w: of %d bytes, packed to %d", meta.ErrCorrupt, plain, packed)
	case uint64(plain) > u.left:
		return fmt.Errorf("block that came packed %w: of %d bytes, where %d were to come", meta.ErrCorrupt, plain, u.left)
	}
	u.want += int(packed)
	return nil
}

// whole reports whether all has come.
func (u *unpacker) whole() error {
	if u.got > 0 || u.left > 0 {
		return fmt.Errorf("what came packed %w: it ends %d bytes too early", meta.ErrCorrupt, u.left)
	}
	return nil
}

// An unpackedSink has what comes packed where it belongs, unpacked.
type unpackedSink struct {
	*unpacker
	*wire.Scatter
	lent int
}

// Sink is where so many bytes of an answer go, until end is called.
func (k *Presses) Sink(by meta.Compression, bytes uint64, parts [][]byte) (to wire.Sink, end func(), err error) {
	if by == meta.Uncompressed {
		return wire.NewScatter(parts), func() {}, nil
	}
	u, err := k.unpacker(by, bytes)
	if err != nil {
		return nil, nil, err
	}
	return &unpackedSink{unpacker: u, Scatter: wire.NewScatter(parts)}, u.close, nil
}

// Room implements wire.Sink, and so do those below.
func (s *unpackedSink) Room(n int) ([]byte, error) {
	b := s.room()
	s.lent = min(n, len(b))
	return b[:s.lent], nil
}

func (s *unpackedSink) Filled() error {
	block, err := s.filled(s.lent)
	for len(block) > 0 && err == nil {
		var to []byte
		to, err = s.Scatter.Room(len(block))
		block = block[copy(to, block):]
	}
	return err
}

func (s *unpackedSink) Whole() error { return cmp.Or(s.whole(), s.Scatter.Whole()) }

// A Pushed says how what is pushed comes: packed by what, and how many bytes it is unpacked.
type Pushed struct {
	Packed meta.Compression `json:",omitempty"`
	Plain  uint64
}

// An Intake reads, unpacked, the bytes that another node pushes.
type Intake struct {
	from      *wire.Stream
	*unpacker        // nil: it comes as it is
	Bytes     uint64 // of it unpacked
	max       uint64 // on the wire
	begun     bool
	block     []byte // is not read yet
}

// maxPushed is how much may be pushed at once.
const maxPushed = 1 << 40

// Intake opens the bytes that a request pushes; it is to be closed.
func (k *Presses) Intake(q wire.Request, is Pushed, s *wire.Stream) (*Intake, error) {
	switch {
	case is.Packed == meta.Uncompressed:
		return &Intake{from: s, Bytes: q.Bytes, max: q.Bytes}, nil
	case !is.Packed.Known(), is.Plain == 0, is.Plain > maxPushed, q.Bytes != 0:
		return nil, fmt.Errorf("request to take %d bytes, packed by %d, %w", is.Plain, is.Packed, meta.ErrInvalid)
	}
	u, err := k.unpacker(is.Packed, is.Plain)
	if err != nil {
		return nil, err
	}
	maxBytes := MaxPacked(is.Plain)
	s.AtMost(maxBytes)
	return &Intake{from: s, unpacker: u, Bytes: is.Plain, max: maxBytes}, nil
}

// Close gives back the memory that it unpacks in.
func (in *Intake) Close() {
	if in.unpacker != nil {
		in.unpacker.close()
	}
}

// firstGrant bytes may come before anything is read. A small copy would wait for the table
// else, and then for a grant of the rest.
const firstGrant = 1 << 20

// Read implements io.Reader. Nothing comes before it is first called.
func (in *Intake) Read(b []byte) (int, error) {
	if !in.begun {
		in.begun = true
		if err := in.from.Grant(min(in.max, firstGrant)); err != nil {
			return 0, err
		}
	}
	if in.unpacker == nil {
		return in.from.Read(b)
	}
	for len(in.block) == 0 {
		n, err := in.from.Read(in.room())
		if err == io.EOF {
			return 0, cmp.Or(in.whole(), err)
		}
		if err == nil {
			in.block, err = in.filled(n)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, in.block)
	in.block = in.block[n:]
	return n, nil
}
