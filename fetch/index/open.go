package index

import (
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// An Index is an open index file. Its methods may be called concurrently,
// but not once Close was called. Asking for a record, chunk or file that is
// not there is a broken invariant of the caller and panics.
type Index struct {
	h    header
	data []byte // the mapping

	// The sections, parts of data.
	entries, runs, files, chunks, text []byte

	fingerprint string
	notes       map[string]string
	racks       map[string]string // of hosts

	shortest, longest int64 // of the records

	begins []int64 // where every stride-th chunk begins; see ChunkOffset
}

// stride is how many rows of the chunk table ChunkOffset adds up at most: 8 KiB,
// less than a microsecond. A million chunks cost 31 KiB.
const stride = 256

// Open maps the index at path. It reads the file once to check it: a file
// that is torn, flipped or crafted gives an error wrapping meta.ErrCorrupt.
// The pages it read are not left resident.
func Open(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	defer f.Close()
	x, err := open(f)
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return x, nil
}

func open(f *os.File) (*Index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, headerSize), head); err != nil {
		return nil, corrupt("header", "the file has %d bytes", info.Size())
	}
	h, err := decodeHeader(head)
	if err != nil {
		return nil, err
	}
	ends, ok := h.ends(info.Size())
	if !ok {
		return nil, corrupt("header", "its tables do not come to the %d bytes of the file", info.Size())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	x := &Index{h: h, data: data, shortest: -1}
	at := int64(headerSize)
	for i, s := range []*[]byte{&x.entries, &x.runs, &x.files, &x.chunks, &x.text} {
		*s = data[at:ends[i]:ends[i]]
		at = ends[i]
	}
	if err := x.check(f, data[at:ends[5]], data[ends[5]:]); err != nil {
		unix.Munmap(data)
		return nil, err
	}
	unix.Madvise(data, unix.MADV_DONTNEED) // the pages that check touched; a hint
	return x, nil
}

// Close unmaps the index.
func (x *Index) Close() error {
	data := x.data
	if data == nil {
		return nil
	}
	*x = Index{}
	return os.NewSyscallError("munmap", unix.Munmap(data))
}

// Fingerprint identifies the version of the source that was indexed.
func (x *Index) Fingerprint() string { return x.fingerprint }

// Records is the number of records.
func (x *Index) Records() uint64 { return x.h.records }

// Bytes is the sum of the lengths of all records.
func (x *Index) Bytes() int64 { return int64(x.h.bytes) }

// Chunks is the number of chunks; none is empty.
func (x *Index) Chunks() int { return int(x.h.chunks) }

// Files is the number of files of the source.
func (x *Index) Files() int { return int(x.h.files) }

// FileBytes is the size of the index itself.
func (x *Index) FileBytes() int64 { return int64(len(x.data)) }

// Notes returns the remarks that the source left. The map is shared.
func (x *Index) Notes() map[string]string { return x.notes }

// Racks returns the rack of each host whose rack the source knew when it was
// scanned, which may be none. The map is shared.
func (x *Index) Racks() map[string]string { return x.racks }

// CountsRecords reports whether the records are those of the source, not chunks of them.
func (x *Index) CountsRecords() bool { return x.notes[uncounted] == "" }

// Size is the length of record i.
func (x *Index) Size(i uint64) int64 { return x.Extent(i).Len }

// Uniform returns the length that all records have, if they have one.
func (x *Index) Uniform() (length int64, ok bool) {
	return x.longest, x.longest == x.shortest && x.h.records > 0
}

// AppendExtents appends where the records stand. Looked up together, they wait
// for memory together: a third of the time of one after the other.
func (x *Index) AppendExtents(extents []Extent, records []uint64) []Extent {
	if x.h.runs != 1 || getRun(x.runs).length > 0 {
		for _, i := range records {
			extents = append(extents, x.Extent(i))
		}
		return extents
	}
	for _, i := range records {
		extents = append(extents, getExtent(x.entries[i*entrySize:]))
	}
	return extents
}

// Extent is where record i stands.
func (x *Index) Extent(i uint64) Extent {
	if i >= x.h.records {
		panic(fmt.Sprintf("index: record %d of %d", i, x.h.records))
	}
	r := getRun(x.runs)
	if x.h.runs > 1 {
		r = getRun(x.runs[x.findRun(i)*runSize:])
	}
	if r.length > 0 {
		return r.extent(i)
	}
	return getExtent(x.entries[(r.at+i-r.first)*entrySize:])
}

// findRun is the row of the run that record i is in.
func (x *Index) findRun(i uint64) int {
	return sort.Search(int(x.h.runs), func(n int) bool { return le.Uint64(x.runs[n*runSize:]) > i }) - 1
}

// runOf is the run that record i is in, and the record that it ends before.
func (x *Index) runOf(i uint64) (r run, end uint64) {
	n := x.findRun(i)
	r, end = getRun(x.runs[n*runSize:]), x.h.records
	if uint64(n)+1 < x.h.runs {
		end = le.Uint64(x.runs[(n+1)*runSize:])
	}
	return r, end
}

// Chunk returns chunk i.
func (x *Index) Chunk(i int) Chunk {
	row, end := x.chunkRow(i)
	c := Chunk{First: row.first, Records: end - row.first, Bytes: row.bytes}
	var room [8][]byte
	for _, name := range x.AppendHosts(room[:0], i) {
		c.Hosts = append(c.Hosts, string(name))
	}
	return c
}

// ChunkRecords are the records of chunk i: so many from the first on.
func (x *Index) ChunkRecords(i int) (first, n uint64) {
	row, end := x.chunkRow(i)
	return row.first, end - row.first
}

// ChunkBytes is the number of bytes of the records of chunk i.
func (x *Index) ChunkBytes(i int) int64 {
	row, _ := x.chunkRow(i)
	return row.bytes
}

// ChunkOffset is the number of bytes of records before chunk i.
func (x *Index) ChunkOffset(i int) int64 {
	at := x.begins[i/stride]
	for j := i - i%stride; j < i; j++ {
		at += int64(le.Uint64(x.chunks[j*chunkSize+8:]))
	}
	return at
}

// chunkRow returns row i of the chunk table and the record that it ends before.
func (x *Index) chunkRow(i int) (row chunkRow, end uint64) {
	row, end = getChunk(x.chunks[i*chunkSize:]), x.h.records
	if i+1 < x.Chunks() {
		end = le.Uint64(x.chunks[(i+1)*chunkSize:])
	}
	return row, end
}

// ChunkOf returns the chunk that holds the record.
func (x *Index) ChunkOf(record uint64) int {
	if record >= x.h.records {
		panic(fmt.Sprintf("index: record %d of %d", record, x.h.records))
	}
	return sort.Search(x.Chunks(), func(n int) bool { return le.Uint64(x.chunks[n*chunkSize:]) > record }) - 1
}

// File returns file i of the source.
func (x *Index) File(i uint32) File {
	row := getFile(x.files[int(i)*fileSize:])
	stamp := row.text + uint64(row.path)
	return File{
		Path:  string(x.text[row.text:stamp]),
		Size:  row.size,
		Stamp: string(x.text[stamp : stamp+uint64(row.stamp)]),
	}
}

// FileSize is the size of file i, without the cost of its name.
func (x *Index) FileSize(i uint32) int64 { return getFile(x.files[int(i)*fileSize:]).size }

// check proves that every later access stays in bounds. The big tables are
// read with pread: pages read through the mapping would stay resident until the
// kernel needs the memory.
func (x *Index) check(f *os.File, notes, racks []byte) error {
	if err := x.checkFiles(); err != nil {
		return err
	}
	if err := x.checkSum(f); err != nil {
		return err
	}
	if err := x.checkRuns(); err != nil {
		return err
	}
	if err := x.checkChunks(); err != nil {
		return err
	}
	if err := x.readNotes(notes); err != nil {
		return err
	}
	var err error
	x.racks, err = readRacks(racks)
	return err
}

func (x *Index) checkFiles() error {
	if x.h.files > 1<<32 {
		return corrupt("file table", "%d files", x.h.files)
	}
	for i := range x.Files() {
		row := getFile(x.files[i*fileSize:])
		if row.size < 0 || row.path > maxText || row.stamp > maxText ||
			!within(row.text, uint64(row.path)+uint64(row.stamp), x.h.text) {
			return corrupt("file table", "file %d is out of bounds", i)
		}
	}
	return nil
}

// checkSum reads the file once, for the checksum and the entries both.
func (x *Index) checkSum(f *os.File) error {
	sum, buf := xxhash.New(), make([]byte, 1<<18)
	in := io.NewSectionReader(f, headerSize, int64(len(x.data))-headerSize)
	entries := len(x.entries) // bytes of them still to come
	for {
		n, err := io.ReadFull(in, buf)
		sum.Write(buf[:n])
		if part := min(n, entries); part > 0 {
			if err := x.checkEntries(buf[:part]); err != nil {
				return err
			}
			entries -= part
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if sum.Sum64() != x.h.sum {
		return corrupt("index", "wrong checksum")
	}
	return nil
}

func (x *Index) checkEntries(b []byte) error {
	file, size := uint32(0), int64(-1) // of the entry before: most often the same
	for ; len(b) > 0; b = b[entrySize:] {
		e := getExtent(b)
		if e.File != file || size < 0 {
			if uint64(e.File) >= x.h.files {
				return corrupt("record table", "there is no file %d", e.File)
			}
			file, size = e.File, x.FileSize(e.File)
		}
		if e.Off > size-e.Len {
			return corrupt("record table", "a record at %d+%d in a file of %d bytes", e.Off, e.Len, size)
		}
		x.spread(e.Len)
	}
	return nil
}

// spread notes the length of some records.
func (x *Index) spread(length int64) {
	if x.shortest < 0 || length < x.shortest {
		x.shortest = length
	}
	x.longest = max(x.longest, length)
}

func (x *Index) checkRuns() error {
	if (x.h.runs == 0) != (x.h.records == 0) {
		return corrupt("run table", "%d runs for %d records", x.h.runs, x.h.records)
	}
	var entries uint64
	for i := range x.h.runs {
		r, end := getRun(x.runs[i*runSize:]), x.h.records
		if i+1 < x.h.runs {
			end = le.Uint64(x.runs[(i+1)*runSize:])
		}
		if r.first >= end || i == 0 && r.first != 0 || !x.holds(r, end-r.first, &entries) {
			return corrupt("run table", "run %d is out of bounds", i)
		}
	}
	if entries != x.h.entries {
		return corrupt("run table", "runs for %d of %d entries", entries, x.h.entries)
	}
	return nil
}

// holds reports whether n records of r are where it says, the first of the
// entries that no run has being *entries.
func (x *Index) holds(r run, n uint64, entries *uint64) bool {
	if r.length == 0 {
		ok := r.at == *entries && n <= x.h.entries-*entries
		*entries += n
		return ok
	}
	if r.length < 0 || uint64(r.file) >= x.h.files {
		return false
	}
	x.spread(r.length)
	size := uint64(x.FileSize(r.file))
	return r.at <= size && n <= (size-r.at)/uint64(r.length)
}

func (x *Index) checkChunks() error {
	if (x.h.chunks == 0) != (x.h.records == 0) {
		return corrupt("chunk table", "%d chunks for %d records", x.h.chunks, x.h.records)
	}
	bytes := x.h.bytes
	for i := range x.Chunks() {
		row, end := x.chunkRow(i)
		if row.first >= end || i == 0 && row.first != 0 ||
			row.bytes < 0 || uint64(row.bytes) > bytes || row.hosts > maxText || !within(row.text, uint64(row.hosts), x.h.text) {
			return corrupt("chunk table", "chunk %d is out of bounds", i)
		}
		if i%stride == 0 {
			x.begins = append(x.begins, int64(x.h.bytes-bytes))
		}
		bytes -= uint64(row.bytes)
	}
	if bytes != 0 || int64(x.h.bytes) < 0 || int64(x.h.records) < 0 {
		return corrupt("chunk table", "chunks do not come to %d bytes", x.h.bytes)
	}
	return nil
}

func (x *Index) readNotes(b []byte) error {
	if len(b) > 2*maxText+4 {
		return corrupt("notes", "%d bytes", len(b))
	}
	var words []string
	for len(b) > 0 {
		word, rest, ok := cutString(b)
		if !ok {
			return corrupt("notes", "a word is cut off")
		}
		words, b = append(words, word), rest
	}
	if len(words)%2 != 1 {
		return corrupt("notes", "%d words", len(words))
	}
	x.fingerprint, x.notes = words[0], make(map[string]string)
	for i := 1; i < len(words); i += 2 {
		x.notes[words[i]] = words[i+1]
	}
	return nil
}

// within reports whether n bytes at off are inside size.
func within(off, n, size uint64) bool { return off <= size && n <= size-off }

// AppendHosts appends the names of the hosts that hold chunk i. They are parts of
// the mapping: good until Close, and not to be changed. Unlike Chunk it makes no
// garbage, nor does looking a name up in a map.
func (x *Index) AppendHosts(names [][]byte, i int) [][]byte {
	row, _ := x.chunkRow(i)
	hosts, start := x.text[row.text:row.text+uint64(row.hosts)], 0
	for at, c := range hosts {
		if c == 0 {
			names = append(names, hosts[start:at:at])
			start = at + 1
		}
	}
	return names
}
