package index

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// An index file is a header and seven sections, one after another, all numbers
// little-endian:
//
//	entries  16 bytes a record: file, offset, length
//	runs     32 bytes a run of records: first record, then either the first of
//	         its entries, or file, offset and length of records that stand
//	         side by side and need no entry
//	files    32 bytes a file: size, and where path and stamp stand in text
//	chunks   32 bytes a chunk: first record, bytes, and its hosts in text
//	text     paths, stamps and hosts
//	notes    the fingerprint, then keys and values, each with its length before
//	racks    racks that are known, each with its length before: its name, then
//	         its hosts, with a zero byte after each
//
// The header has the counts, a checksum of the sections and one of itself.
// The sections' places follow from the counts, and the size of the file does
// too: there is one valid layout for a header. The format is 1 if there are no racks,
// as before racks were added, and 2 otherwise: a version of rankfs that ignored the
// racks would plan other batches than one that reads them.
const (
	magic   = "rankfs\x00i"
	version = 2 // the latest

	headerSize = 128
	entrySize  = 16
	runSize    = 32
	fileSize   = 32
	chunkSize  = 32

	maxOffset = 1<<48 - 1 // of an offset or a length in an entry
	maxText   = 1 << 20   // of one path, stamp, list of hosts; of all notes
	maxHosts  = 1 << 16   // with a known rack
	maxName   = 1 << 10   // of such a host, and of a rack
)

var le = binary.LittleEndian

// A header counts what the sections hold.
type header struct {
	records uint64
	bytes   uint64
	entries uint64
	runs    uint64
	files   uint64
	chunks  uint64
	text    uint64 // bytes
	notes   uint64 // bytes
	sum     uint64 // of the sections
	racks   uint64 // bytes
}

func (h *header) fields() []*uint64 {
	return []*uint64{&h.records, &h.bytes, &h.entries, &h.runs, &h.files, &h.chunks, &h.text, &h.notes, &h.sum, &h.racks}
}

func (h *header) version() uint32 {
	if h.racks == 0 {
		return 1
	}
	return version
}

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	le.PutUint32(b[8:], h.version())
	for i, f := range h.fields() {
		le.PutUint64(b[16+8*i:], *f)
	}
	le.PutUint64(b[headerSize-8:], xxhash.Sum64(b[:headerSize-8]))
	return b
}

func decodeHeader(b []byte) (h header, err error) {
	switch {
	case len(b) < headerSize || string(b[:8]) != magic:
		return h, fmt.Errorf("header %w: this is no index", meta.ErrCorrupt)
	case le.Uint64(b[headerSize-8:]) != xxhash.Sum64(b[:headerSize-8]):
		return h, fmt.Errorf("header %w: wrong checksum", meta.ErrCorrupt)
	case le.Uint32(b[8:]) < 1 || le.Uint32(b[8:]) > version:
		return h, fmt.Errorf("format %d of the index %w: this rankfs reads formats up to %d", le.Uint32(b[8:]), meta.ErrCorrupt, version)
	}
	for i, f := range h.fields() {
		*f = le.Uint64(b[16+8*i:])
	}
	if h.version() != le.Uint32(b[8:]) {
		return h, fmt.Errorf("header %w: format %d with %d bytes of racks", meta.ErrCorrupt, le.Uint32(b[8:]), h.racks)
	}
	return h, nil
}

// ends returns where each of the seven sections ends, or false if they do not
// come to exactly size bytes.
func (h header) ends(size int64) (ends [7]int64, ok bool) {
	at := uint64(headerSize)
	for i, s := range [...]struct{ count, width uint64 }{
		{h.entries, entrySize}, {h.runs, runSize}, {h.files, fileSize}, {h.chunks, chunkSize}, {h.text, 1}, {h.notes, 1}, {h.racks, 1},
	} {
		if s.count > uint64(size)/s.width {
			return ends, false
		}
		at += s.count * s.width
		ends[i] = int64(at)
	}
	return ends, at == uint64(size)
}

func appendExtent(b []byte, e Extent) []byte {
	b = le.AppendUint32(b, e.File)
	b = le.AppendUint32(b, uint32(e.Off))
	return le.AppendUint64(b, uint64(e.Len)<<16|uint64(e.Off)>>32)
}

func getExtent(b []byte) Extent {
	high := le.Uint64(b[8:])
	return Extent{
		File: le.Uint32(b),
		Off:  int64(high&0xffff<<32 | uint64(le.Uint32(b[4:]))),
		Len:  int64(high >> 16),
	}
}

// A run is a row of records with consecutive entries (length zero), or of
// records of one length side by side in a file, which have none.
type run struct {
	first  uint64 // record
	at     uint64 // first entry, or offset of the first record
	length int64  // of each record; zero if they have entries
	file   uint32
}

func putRun(b []byte, r run) {
	le.PutUint64(b, r.first)
	le.PutUint64(b[8:], r.at)
	le.PutUint64(b[16:], uint64(r.length))
	le.PutUint64(b[24:], uint64(r.file))
}

func getRun(b []byte) run {
	return run{le.Uint64(b), le.Uint64(b[8:]), int64(le.Uint64(b[16:])), uint32(le.Uint64(b[24:]))}
}

// extent is where record i of the run stands, if it has no entry.
func (r run) extent(i uint64) Extent {
	return Extent{r.file, int64(r.at + (i-r.first)*uint64(r.length)), r.length}
}

// A fileRow is a file in the table; its path and its stamp stand side by side.
type fileRow struct {
	size  int64
	text  uint64
	path  uint32
	stamp uint32
}

func putFile(b []byte, f fileRow) {
	le.PutUint64(b, uint64(f.size))
	le.PutUint64(b[8:], f.text)
	le.PutUint32(b[16:], f.path)
	le.PutUint32(b[20:], f.stamp)
	le.PutUint64(b[24:], 0)
}

func getFile(b []byte) fileRow {
	return fileRow{int64(le.Uint64(b)), le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])}
}

// A chunkRow is a chunk in the table; it ends where the next one begins.
type chunkRow struct {
	first uint64
	bytes int64
	text  uint64
	hosts uint32 // bytes of text: names with a zero byte after each
}

func putChunk(b []byte, c chunkRow) {
	le.PutUint64(b, c.first)
	le.PutUint64(b[8:], uint64(c.bytes))
	le.PutUint64(b[16:], c.text)
	le.PutUint64(b[24:], uint64(c.hosts))
}

func getChunk(b []byte) chunkRow {
	return chunkRow{le.Uint64(b), int64(le.Uint64(b[8:])), le.Uint64(b[16:]), uint32(le.Uint64(b[24:]))}
}

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint32(b, uint32(len(s))), s...)
}

// cutString takes the first string off b.
func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(le.Uint32(b)) {
		return "", nil, false
	}
	n := 4 + int(le.Uint32(b))
	return string(b[4:n]), b[n:], true
}

func corrupt(what, format string, args ...any) error {
	return fmt.Errorf("%s %w: %s", what, meta.ErrCorrupt, fmt.Sprintf(format, args...))
}

// uncounted is the note of an index whose records are chunks.
const uncounted = "records"
