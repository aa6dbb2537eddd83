package sequence

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

var errVint = errors.New("a number that no 32 bits hold")

func bigInt32(b []byte) int64 { return int64(int32(binary.BigEndian.Uint32(b))) }

// readVint reads a number as Hadoop writes it where most are small: one byte,
// or one that gives sign and length and then the number's own bytes. It also
// returns how many bytes were read.
func readVint(r io.ByteReader) (n, used int64, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	first := int8(b)
	if first >= -112 {
		return int64(first), 1, nil
	}
	more, negative := int64(-112)-int64(first), false
	if more > 8 {
		more, negative = more-8, true
	}
	var u uint64
	for used = 1; used <= more; used++ {
		if b, err = r.ReadByte(); err != nil {
			return 0, used, unexpected(err)
		}
		u = u<<8 | uint64(b)
	}
	if u > math.MaxInt32 {
		return 0, used, errVint
	}
	if negative {
		return ^int64(u), used, nil
	}
	return int64(u), used, nil
}

// vintBytes is the number of bytes of a number that is not negative.
func vintBytes(n int64) int64 {
	size := int64(1)
	if n > 127 {
		for ; n > 0; n >>= 8 {
			size++
		}
	}
	return size
}

// unexpected is err of a read in the middle of something.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
