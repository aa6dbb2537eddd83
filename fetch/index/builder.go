package index

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// A Builder writes an index. The file appears under its name whole, at
// Commit, or never. Its methods may not be called concurrently. The first
// error sticks: later calls do nothing, and Commit returns it.
//
// Entries, which are many, go straight to the new file. The other tables go
// to files without a name until Commit knows where they belong.
type Builder struct {
	path string
	file *os.File
	sum  *xxhash.Digest
	out  *bufio.Writer // to file and sum

	runs, files, chunks, text *spool

	h     header
	run   run      // the one that grows; of h.runs it is the last, not yet written
	chunk chunkRow // the same of h.chunks, if open
	open  bool     // whether records go to chunk
	last  struct { // the file whose size was asked for last
		file uint32
		size int64
	}
	notes []byte
	racks map[string]string // of hosts
	err   error
}

// Create begins an index that Commit will put at path. A process that is
// killed meanwhile leaves one file, .NAME.*.tmp, beside it.
func Create(path string) (*Builder, error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("create index: %w", err)
	}
	b := &Builder{path: path, file: f, sum: xxhash.New()}
	b.out = bufio.NewWriterSize(io.MultiWriter(f, b.sum), 1<<18)
	for _, s := range []**spool{&b.runs, &b.files, &b.chunks, &b.text} {
		if *s, err = newSpool(dir); err != nil {
			b.Abort()
			return nil, fmt.Errorf("create index: %w", err)
		}
	}
	if _, err := f.Write(make([]byte, headerSize)); err != nil {
		b.Abort()
		return nil, fmt.Errorf("create index: %w", err)
	}
	return b, nil
}

// Records is the number of records added so far.
func (b *Builder) Records() uint64 { return b.h.records }

// Bytes is the sum of the lengths of the records added so far.
func (b *Builder) Bytes() int64 { return int64(b.h.bytes) }

// AddFile adds a file to the file table. Its size bounds the records in it.
func (b *Builder) AddFile(f File) uint32 {
	if b.h.files > math.MaxUint32 || f.Size < 0 || len(f.Path) > maxText || len(f.Stamp) > maxText {
		b.fail(fmt.Errorf("file %d of %d bytes %w: its number, size or name is out of range", b.h.files, f.Size, meta.ErrInvalid))
		return 0
	}
	id := uint32(b.h.files)
	var row [fileSize]byte
	putFile(row[:], fileRow{f.Size, b.h.text, uint32(len(f.Path)), uint32(len(f.Stamp))})
	b.addText(f.Path)
	b.addText(f.Stamp)
	b.fail(b.files.write(row[:]))
	b.h.files++
	b.last.file, b.last.size = id, f.Size
	return id
}

// BeginChunk ends the chunk that records were added to and begins another,
// held by the hosts. A chunk without records leaves no trace.
func (b *Builder) BeginChunk(hosts ...string) {
	b.endChunk()
	c := chunkRow{first: b.h.records, text: b.h.text}
	for _, host := range hosts {
		if strings.IndexByte(host, 0) >= 0 || len(host) > maxText-int(c.hosts)-1 {
			b.fail(fmt.Errorf("list of hosts of chunk %d %w: a name has a zero byte or is too long", b.h.chunks, meta.ErrInvalid))
			return
		}
		b.addText(host)
		b.addText("\x00")
		c.hosts += uint32(len(host)) + 1
	}
	b.chunk, b.open = c, true
}

func (b *Builder) endChunk() {
	if !b.open || b.chunk.first == b.h.records {
		return
	}
	var row [chunkSize]byte
	putChunk(row[:], b.chunk)
	b.fail(b.chunks.write(row[:]))
	b.h.chunks++
	b.open = false
}

// Add adds the next record.
func (b *Builder) Add(e Extent) error {
	if err := b.admit(e, 1); err != nil {
		return err
	}
	if b.h.runs == 0 || b.run.length != 0 {
		b.beginRun(run{first: b.h.records, at: b.h.entries})
	}
	if _, err := b.out.Write(appendExtent(b.out.AvailableBuffer(), e)); err != nil {
		b.fail(fmt.Errorf("write index: %w", err))
	}
	b.h.entries++
	b.count(1, e.Len)
	return b.err
}

// AddStride adds n records of recordLen bytes that stand one after another
// from off on. They take no entry each; strides that continue one another
// take no more room than one.
func (b *Builder) AddStride(file uint32, off, recordLen int64, n uint64) error {
	high, total := bits.Mul64(uint64(recordLen), n)
	if b.err == nil && (recordLen <= 0 || high != 0 || total > math.MaxInt64) {
		b.fail(fmt.Errorf("%d records of %d bytes in a row %w: use records of 1 byte or more", n, recordLen, meta.ErrInvalid))
	}
	if err := b.admit(Extent{file, off, int64(total)}, n); err != nil || n == 0 {
		return err
	}
	next := run{b.h.records, uint64(off), recordLen, file}
	if b.h.runs == 0 || b.run.length != recordLen || b.run.file != file || b.run.extent(b.h.records).Off != off {
		b.beginRun(next)
	}
	b.count(n, int64(total))
	return b.err
}

// admit reports whether n records may stand in e.
func (b *Builder) admit(e Extent, n uint64) error {
	if b.err != nil {
		return b.err
	}
	if uint64(e.File) >= b.h.files {
		return b.fail(fmt.Errorf("record %d in file %d %w: there are %d", b.h.records, e.File, meta.ErrInvalid, b.h.files))
	}
	size := b.sizeOf(e.File)
	switch {
	case e.Off < 0 || e.Len < 0 || e.Off > maxOffset || e.Len > maxOffset || e.Off > size-e.Len:
		b.fail(fmt.Errorf("record %d at %d+%d %w: its file has %d bytes", b.h.records, e.Off, e.Len, meta.ErrInvalid, size))
	case uint64(e.Len) > math.MaxInt64-b.h.bytes || n > math.MaxInt64-b.h.records:
		b.fail(fmt.Errorf("record %d %w: too many bytes in all", b.h.records, meta.ErrInvalid))
	}
	return b.err
}

func (b *Builder) sizeOf(file uint32) int64 {
	if b.last.file != file {
		var row [fileSize]byte
		b.fail(b.files.readAt(row[:], int64(file)*fileSize))
		b.last.file, b.last.size = file, getFile(row[:]).size
	}
	return b.last.size
}

func (b *Builder) count(records uint64, bytes int64) {
	if !b.open {
		b.BeginChunk()
	}
	b.h.records += records
	b.h.bytes += uint64(bytes)
	b.chunk.bytes += bytes
}

func (b *Builder) beginRun(r run) {
	b.endRun()
	b.run = r
	b.h.runs++
}

func (b *Builder) endRun() {
	if b.h.runs == 0 {
		return
	}
	var row [runSize]byte
	putRun(row[:], b.run)
	b.fail(b.runs.write(row[:]))
}

func (b *Builder) addText(s string) {
	b.fail(b.text.write([]byte(s)))
	b.h.text += uint64(len(s))
}

// Note keeps a remark about the dataset for people to read. A later note of
// the same key replaces the earlier one.
func (b *Builder) Note(key, value string) {
	b.notes = appendString(appendString(b.notes, key), value)
	if len(b.notes) > maxText {
		b.fail(fmt.Errorf("text of notes of %d bytes %w: at most %d", len(b.notes), meta.ErrInvalid, maxText))
	}
}

// Uncounted notes that each record is a chunk of what, and that the scan has not
// counted what the chunks hold.
func (b *Builder) Uncounted(what string) {
	b.Note(uncounted, "each is a chunk of "+what+", which were not counted")
}

// Rack notes the rack of a host. If a host has several, the first by name counts.
func (b *Builder) Rack(host, rack string) {
	if b.racks == nil {
		b.racks = make(map[string]string)
	}
	before, known := b.racks[host]
	switch {
	case !isName(host) || !isName(rack):
		b.fail(fmt.Errorf("host %.40q in rack %.40q %w: a name is empty, too long or has a zero byte", host, rack, meta.ErrInvalid))
	case !known && len(b.racks) == maxHosts:
		b.fail(fmt.Errorf("table of racks of more than %d hosts %w", maxHosts, meta.ErrInvalid))
	case !known || rack < before:
		b.racks[host] = rack
	}
}

func (b *Builder) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// Commit puts the index at its path, in one step and only when it is on the
// disk. The builder is of no use afterwards, whatever the outcome.
func (b *Builder) Commit(fingerprint string) error {
	defer b.Abort()
	b.endChunk()
	b.endRun()
	if len(fingerprint) > maxText {
		b.fail(fmt.Errorf("fingerprint of %d bytes %w: at most %d", len(fingerprint), meta.ErrInvalid, maxText))
	}
	if b.err == nil {
		b.fail(b.write(fingerprint))
	}
	if b.err == nil {
		b.fail(durable.Rename(b.file, b.path))
	}
	if b.err != nil {
		return fmt.Errorf("commit index: %w", b.err)
	}
	return nil
}

func (b *Builder) write(fingerprint string) error {
	for _, s := range []*spool{b.runs, b.files, b.chunks, b.text} {
		if err := s.drain(b.out); err != nil {
			return err
		}
	}
	notes := append(appendString(nil, fingerprint), b.notes...)
	b.h.notes = uint64(len(notes))
	racks := appendRacks(nil, b.racks)
	b.h.racks = uint64(len(racks))
	b.out.Write(notes) // Flush returns its error
	b.out.Write(racks)
	if err := b.out.Flush(); err != nil {
		return err
	}
	b.h.sum = b.sum.Sum64()
	_, err := b.file.WriteAt(b.h.encode(), 0)
	return err
}

// Abort leaves nothing of the index behind. After Commit it does nothing.
func (b *Builder) Abort() {
	if b.file == nil {
		return
	}
	os.Remove(b.file.Name()) // gone already if it was renamed
	b.file.Close()
	b.file = nil
	for _, s := range []*spool{b.runs, b.files, b.chunks, b.text} {
		if s != nil {
			s.file.Close()
		}
	}
	b.fail(errors.New("index builder is done"))
}

// A spool is a table that grows beside the index, in a file without a name.
type spool struct {
	file *os.File
	out  *bufio.Writer
}

func newSpool(dir string) (*spool, error) {
	f, err := Unnamed(dir, ".index-*.tmp")
	if err != nil {
		return nil, err
	}
	return &spool{f, bufio.NewWriterSize(f, 1<<16)}, nil
}

// Unnamed makes a file in a directory, as os.CreateTemp does, that goes when it is closed.
func Unnamed(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (s *spool) write(b []byte) error {
	_, err := s.out.Write(b)
	return err
}

func (s *spool) readAt(b []byte, off int64) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	_, err := s.file.ReadAt(b, off)
	return err
}

func (s *spool) drain(w io.Writer) error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, s.file)
	return err
}
