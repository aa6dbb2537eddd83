package record

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Spec says what records are, and what becomes of them.
type Spec meta.Records

// Ordered reports whether the records of a part are sorted.
func (s Spec) Ordered() bool { return s.Order != meta.AsWritten }

// errBad is the error of a record that cannot be: mv(1) takes EINVAL from rename(2) for a directory
// that is moved into itself.
const errBad = unix.EBADMSG

// placed adds the place of a record of a map to its error.
func placed(number, at int, err error) error {
	return fmt.Errorf("record %d, at byte %d: %w", number, at, err)
}

// sizeBytes stand before a record that says its size.
const sizeBytes = 4

// first is the first record of b, which is not empty, where it stands: with the size before it, or
// the newline after it if it has one.
func (s *Spec) first(b []byte) ([]byte, error) {
	switch s.Kind {
	case meta.Lines:
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return b[:i+1], nil
		}
		return b, nil
	case meta.Fixed:
		if n := int(s.Size); n <= len(b) {
			return b[:n], nil
		}
		return nil, meta.Worded(errBad, "it ends after %d of its %d bytes", len(b), s.Size)
	}
	if len(b) < sizeBytes {
		return nil, meta.Worded(errBad, "it ends after %d of the %d bytes of its size", len(b), sizeBytes)
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-sizeBytes) {
		return nil, meta.Worded(errBad, "its size is %d, and it ends after %d of that", n, len(b)-sizeBytes)
	}
	return b[:sizeBytes+int(n)], nil
}

// Whole is how many bytes at the beginning of b are whole records; more bytes follow b.
func (s *Spec) Whole(b []byte) (n int) {
	switch s.Kind {
	case meta.NoRecords:
		return len(b)
	case meta.Lines:
		return bytes.LastIndexByte(b, '\n') + 1
	case meta.Fixed:
		return len(b) - len(b)%int(s.Size)
	}
	for len(b)-n >= sizeBytes {
		next := uint64(binary.LittleEndian.Uint32(b[n:])) + sizeBytes
		if next > uint64(len(b)-n) {
			break
		}
		n += int(next)
	}
	return n
}

// ended reports whether a record is as it is put: a last line without a newline is given one.
func (s *Spec) ended(r []byte) bool {
	return s.Kind != meta.Lines || len(r) > 0 && r[len(r)-1] == '\n'
}

// size is the length of a record where it is put.
func (s *Spec) size(r []byte) int64 {
	if s.ended(r) {
		return int64(len(r))
	}
	return int64(len(r)) + 1
}

// payload has the bytes of a record without its size or its end.
func (s *Spec) payload(r []byte) []byte {
	switch {
	case s.Kind == meta.Sized:
		return r[sizeBytes:]
	case s.Kind == meta.Lines && s.ended(r):
		return r[:len(r)-1]
	}
	return r
}

// key is the key of a record. A field that is missing, and bytes beyond its end, are empty.
func (s *Spec) key(r []byte) []byte {
	payload := s.payload(r)
	if s.Key == (meta.RecordKey{}) {
		return payload
	}
	return s.within(payload)
}

func (s *Spec) within(payload []byte) []byte {
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

// A Memory gives bytes that are all zero, which it may take back once nothing made of them is
// used. Those that are needed no longer are returned before, by Free.
type Memory interface {
	More(bytes int64) ([]byte, error)
	Free(bytes []byte)
}
