package record

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Spec says what records are, and what becomes of them.
type Spec meta.Records

// Ordered reports whether the records of a part are sorted.
func (s Spec) Ordered() bool { return s.Order != meta.AsWritten }

// errBad is what a record is that cannot be: mv(1) takes EINVAL from rename(2) for a directory
// that is moved into itself.
const errBad = unix.EBADMSG

// sizeBytes stand before a record that says its size.
const sizeBytes = 4

// A row is a record where it stands: payload is what the record says, whole is that with its
// size before it, or its newline after it if it has one.
type row struct{ whole, payload []byte }

// first is the first record of bytes of which there are some.
func (s Spec) first(b []byte) (row, error) {
	switch s.Kind {
	case meta.Lines:
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return row{b[:i+1], b[:i]}, nil
		}
		return row{b, b}, nil
	case meta.Fixed:
		if n := int(s.Size); n <= len(b) {
			return row{b[:n], b[:n]}, nil
		}
		return row{}, meta.Worded(errBad, "%d bytes are left, and a record has %d", len(b), s.Size)
	}
	if len(b) < sizeBytes {
		return row{}, meta.Worded(errBad, "%d bytes are left, and the size of a record takes %d", len(b), sizeBytes)
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-sizeBytes) {
		return row{}, meta.Worded(errBad, "it says that it has %d bytes, and %d are left", n, len(b)-sizeBytes)
	}
	end := sizeBytes + int(n)
	return row{b[:end], b[sizeBytes:end]}, nil
}

// size is what a record takes where it is put: a last line without a newline is given one.
func (s Spec) size(r row) int64 {
	if s.Kind == meta.Lines {
		return int64(len(r.payload)) + 1
	}
	return int64(len(r.whole))
}

// key is the key of a record. A field that is missing, and bytes beyond its end, are empty.
func (s Spec) key(payload []byte) []byte {
	switch k := s.Key; {
	case k.From > 0:
		return payload[min(len(payload), int(k.From-1)):min(len(payload), int(k.To))]
	case k.Field > 0:
		return field(payload, s.Sep, k.Field)
	}
	return payload
}

// field is a field of a record, counted from one.
func field(b []byte, sep byte, number uint32) []byte {
	for range number - 1 {
		i := bytes.IndexByte(b, sep)
		if i < 0 {
			return b[len(b):]
		}
		b = b[i+1:]
	}
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i]
	}
	return b
}

// partOf is the part to which a key belongs.
func partOf(key []byte, parts uint64) uint64 {
	if parts == 1 {
		return 0
	}
	return xxhash.Sum64(key) % parts
}

// A Memory gives bytes that are all zero. They are the caller's, who may take them back once
// all that was made of them is used.
type Memory func(bytes int64) ([]byte, error)
