package index

import "github.com/cespare/xxhash/v2"

// Seal makes the checksums of an index file right, whatever else is wrong.
func Seal(b []byte) {
	if len(b) < headerSize {
		return
	}
	copy(b, magic)
	h := header{racks: le.Uint64(b[16+8*9:])}
	le.PutUint32(b[8:], h.version())
	le.PutUint64(b[16+8*8:], xxhash.Sum64(b[headerSize:]))
	le.PutUint64(b[headerSize-8:], xxhash.Sum64(b[:headerSize-8]))
}
