package pieces

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// Offsets are where a map's parts begin, and where the last ends.
type Offsets []byte

func (o Offsets) at(i uint64) int64 { return int64(binary.LittleEndian.Uint64(o[8*i:])) }

// Whole are the offsets of one part.
func Whole(size int64) Offsets {
	return binary.LittleEndian.AppendUint64(make([]byte, 8, 16), uint64(size))
}

// errNotDivided is for rename(2) of an attempt whose offsets cannot be, or whose
// records cannot: of EINVAL mv(1) says that a directory is moved into itself.
const errNotDivided = unix.EBADMSG

// ReadOffsets reads and checks the offsets of an attempt of that many bytes. A stage of one
// part needs none, nor does one whose records the pool divides: it has nil.
func ReadOffsets(path string, spec meta.Stage, size int64) (Offsets, error) {
	parts := spec.Parts
	b, n, err := readUpTo(path, 8*int64(parts+1))
	switch none := errors.Is(err, os.ErrNotExist); {
	case none && spec.Records.Kind != meta.NoRecords:
		return nil, nil
	case none && parts == 1:
		return Whole(size), nil
	case none:
		return nil, meta.Worded(errNotDivided, "it has no .idx file, which says where its %d parts begin: write %d numbers of 8 bytes, little-endian, the last of them its size; or have the pool divide it, with record=line and key= in the spec", parts, parts+1)
	case err != nil:
		return nil, err
	case spec.Records.Ranges:
		return nil, meta.Worded(errNotDivided, "it has an .idx file, and with by=range the pool divides it: leave that out")
	}
	o := Offsets(b)
	if uint64(n) != 8*(parts+1) || n != int64(len(b)) {
		return nil, meta.Worded(errNotDivided, "its .idx file has %d bytes; %d parts take %d", n, parts, 8*(parts+1))
	}
	for i := range parts {
		if from, to := uint64(o.at(i)), uint64(o.at(i+1)); from > to {
			return nil, meta.Worded(errNotDivided, "its .idx file goes back at part %d, from %d to %d", i, from, to)
		}
	}
	if o.at(0) != 0 || o.at(parts) != size {
		return nil, meta.Worded(errNotDivided, "its .idx file goes from %d to %d, and the file has %d bytes", uint64(o.at(0)), uint64(o.at(parts)), size)
	}
	return o, nil
}

// readUpTo reads at most so many bytes of a file, and says how many it has: its writer may
// have made it as large as no memory is.
func readUpTo(path string, bytes int64) (b []byte, has int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	b, err = io.ReadAll(io.LimitReader(file, bytes))
	return b, info.Size(), err
}
