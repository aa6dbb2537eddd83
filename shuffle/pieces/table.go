package pieces

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A Table says of each part of a map where it ends in the map's file, and what its
// piece, the bytes up to there, hashes to. The sum of a table is what the cluster agrees
// on: it stands for all bytes and offsets, and each piece can be checked without the
// others.
type Table []byte

// RowBytes are the bytes of a part in a table: its end and the xxh64 of its piece.
const RowBytes = 16

// Parts is how many it has rows of.
func (t Table) Parts() uint64 { return uint64(len(t) / RowBytes) }

// End is where the piece of a part ends.
func (t Table) End(part uint64) int64 { return int64(binary.LittleEndian.Uint64(t[RowBytes*part:])) }

// SumOf is what the piece of a part hashes to.
func (t Table) SumOf(part uint64) uint64 { return binary.LittleEndian.Uint64(t[RowBytes*part+8:]) }

// Sum is what the table hashes to.
func (t Table) Sum() uint64 { return xxhash.Sum64(t) }

// Size is the size of the map.
func (t Table) Size() int64 { return t.End(t.Parts() - 1) }

// Is reports whether the table is the one of a map of that size that was agreed on.
func (t Table) Is(sum uint64, size int64) bool {
	if len(t) == 0 || len(t)%RowBytes != 0 || t.Sum() != sum {
		return false
	}
	at := int64(0)
	for i := range t.Parts() {
		if t.End(i) < at {
			return false
		}
		at = t.End(i)
	}
	return at == size
}

// AppendRow appends a row to a table.
func AppendRow(t Table, end int64, sum uint64) Table {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(t, uint64(end)), sum)
}

// Length is the length of the pieces of the rows, the first of which begins there.
func (t Table) Length(begin int64) int64 { return t.End(t.Parts()-1) - begin }

// Match reports whether bytes are the pieces of the rows.
func (t Table) Match(b []byte, begin int64) bool {
	at := begin
	for i := range t.Parts() {
		if xxhash.Sum64(b[at-begin:t.End(i)-begin]) != t.SumOf(i) {
			return false
		}
		at = t.End(i)
	}
	return true
}
