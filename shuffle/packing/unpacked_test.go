package packing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"rankfs/meta"
)

// packedBy is what is sent of bytes that are added in pieces.
func (k *Presses) packedBy(t *testing.T, by meta.Compression, b []byte, piece int) (packed []byte) {
	t.Helper()
	err := k.Pack(by, uint64(len(b)), func(b []byte) error {
		packed = append(packed, b...)
		return nil
	}, func(emit func([]byte) error) error {
		for at := 0; at < len(b); at += piece {
			lent := bytes.Clone(b[at:min(at+piece, len(b))])
			if err := emit(lent); err != nil {
				return err
			}
			clear(lent)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// unpackTo has a sink take what is sent, in frames of some bytes, as package wire does.
func (k *Presses) unpackTo(by meta.Compression, packed []byte, frame int, parts ...[]byte) error {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	to, end, err := k.Sink(by, uint64(n), parts)
	if err != nil {
		return err
	}
	defer end()
	for len(packed) > 0 {
		for left := min(frame, len(packed)); left > 0; {
			b, err := to.Room(left)
			if err != nil {
				return err
			}
			n := copy(b, packed)
			packed, left = packed[n:], left-n
			if err := to.Filled(); err != nil {
				return err
			}
		}
	}
	return to.Whole()
}

// idle reports whether no press is in use.
func (k *Presses) idle() bool { return len(k.presses) == cap(k.presses) }

// What is packed and unpacked is what it was, in whichever pieces it comes, and goes; what
// cannot be packed is hardly longer.
func TestPackedAndUnpacked(t *testing.T) {
	k := New()
	r := rand.New(rand.NewPCG(1, 2))
	for _, by := range []meta.Compression{meta.LZ4, meta.Zstd} {
		for _, size := range []int{0, 1, 7, 1000, packedBlock - 1, packedBlock, packedBlock + 1, 20*packedBlock + 77} {
			for _, kind := range []string{"zeros", "noise", "both"} {
				b := make([]byte, size)
				if kind != "zeros" {
					rand.NewChaCha8([32]byte{}).Read(b)
				}
				if kind == "both" {
					clear(b[size/2:])
				}
				packed := k.packedBy(t, by, b, 1+r.IntN(2*packedBlock))
				least, most := 0, int(MaxPacked(uint64(size)))
				switch {
				case kind == "noise":
					least = size
				case kind == "zeros" && size >= 1000:
					most = size / 20
				case size > 10*packedBlock: // after noise not each block is tried
					least, most = size/2+packedBlock, size/2+8*packedBlock
				}
				if n := len(packed); n < least || n > most {
					t.Errorf("%s of %d bytes are packed by %v to %d, not %d to %d", kind, size, by, n, least, most)
				}
				got := make([]byte, size)
				cut := r.IntN(size + 1)
				if err := k.unpackTo(by, packed, 1+r.IntN(packedBlock), got[:cut], got[cut:]); err != nil || !bytes.Equal(got, b) {
					t.Errorf("%s of %d bytes, packed by %v: other bytes, or %v", kind, size, by, err)
				}
			}
		}
	}
	if !k.idle() {
		t.Error("a press is in use still")
	}
}

// A block is no longer than one may be, however much is asked for.
func TestPackedBlocksAreBounded(t *testing.T) {
	k := New()
	for _, n := range []uint32{packedBlock + 1, 1 << 20} {
		b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), n)
		if err := k.unpackTo(meta.LZ4, append(b, make([]byte, n)...), 1<<20, make([]byte, 1<<20)); !errors.Is(err, meta.ErrCorrupt) {
			t.Errorf("a block of %d bytes: %v", n, err)
		}
	}
}

// A feed that has more than was said, or less, is not sent to its end.
func TestPackedFeedsOfAnotherLength(t *testing.T) {
	k := New()
	for _, n := range []int{0, 999, 1001, 1 << 20} {
		err := k.Pack(meta.LZ4, 1000, func([]byte) error { return nil }, func(emit func([]byte) error) error { return emit(make([]byte, n)) })
		if !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%d bytes where 1000 were said: %v", n, err)
		}
	}
}

// Whatever comes, nothing is written beside what was asked for, and all of that or an error; what
// one has packed the other unpacks.
func FuzzUnpack(f *testing.F) {
	k := New()
	f.Add([]byte{}, uint16(0), false)
	f.Add([]byte("\xe8\x03\x00\x00\x08\x00\x00\x00\x1fa\x01\x00\xff\xff\xff\x00"), uint16(1000), false)
	f.Add([]byte("\x04\x00\x00\x00\x04\x00\x00\x00text"), uint16(4), true)
	f.Fuzz(func(t *testing.T, b []byte, size uint16, zstd bool) {
		by := meta.LZ4
		if zstd {
			by = meta.Zstd
		}
		around := bytes.Repeat([]byte{0xa5}, int(size)+128)
		dst := around[64:][:size:size]
		for _, frame := range []int{1 << 20, 5} {
			if err := k.unpackTo(by, b, frame, dst); err != nil && !errors.Is(err, meta.ErrCorrupt) {
				t.Errorf("%v", err)
			}
			if bytes.Count(around[:64], []byte{0xa5}) != 64 || bytes.Count(around[64+int(size):], []byte{0xa5}) != 64 {
				t.Error("something was written beside what was asked for")
			}
		}
		got := make([]byte, len(b))
		if err := k.unpackTo(by, k.packedBy(t, by, b, 1+int(size)), 1+int(size), got); err != nil || !bytes.Equal(got, b) {
			t.Errorf("what was packed is unpacked to other bytes, or %v", err)
		}
		if !k.idle() {
			t.Error("a press is in use still")
		}
	})
}
