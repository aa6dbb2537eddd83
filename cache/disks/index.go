package disks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// The index file has a header, a record for each slab, the one used longest
// ago first, and the sum of both. All numbers are little-endian.
const (
	indexName   = ".index"
	indexMagic  = "rankfs slabs 2\n\x00"
	indexRecord = 64
	indexPiece  = 1024 // records, which are read and written together
	// indexSlabs: of 1 MiB each, 256 TiB. Memory for what is known of so many,
	// 15 GB, ends before.
	indexSlabs = 1 << 28
)

// An item is what the index says of a slab.
type item struct {
	label
	real int64
}

// indexSize is how long an index of n items is.
func indexSize(n int) int64 { return int64(len(indexMagic) + n*indexRecord + 8) }

// indexCount is how many items are in an index of so many bytes.
func indexCount(size int64) int { return int((size - indexSize(0)) / indexRecord) }

// writeIndex writes an index of what next appends to nothing, until that is
// nothing, and returns how long it is.
func writeIndex(w io.Writer, next func([]item) ([]item, error)) (int64, error) {
	b, items := make([]byte, 0, indexPiece*indexRecord), make([]item, 0, indexPiece)
	sum, n := xxhash.New(), 0
	for b = append(b, indexMagic...); len(b) > 0; n += len(items) {
		_, _ = sum.Write(b)
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
		var err error
		if items, err = next(items[:0]); err != nil {
			return 0, err
		}
		b = b[:0]
		for _, i := range items {
			b = appendItem(b, i)
		}
	}
	_, err := w.Write(binary.LittleEndian.AppendUint64(b, sum.Sum64()))
	return indexSize(n), err
}

func appendItem(b []byte, i item) []byte {
	b = append(b, i.key.Plan[:]...)
	for _, n := range [...]uint64{i.key.Rank, i.key.Step, uint64(i.size), i.sum, uint64(i.real), 0} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

var errIndex = meta.Worded(meta.ErrCorrupt, "index is corrupt")

// scanIndex gives take the items of an index, by and by. It refuses what
// writeIndex would not write, but knows only at the end: the sum is there.
func scanIndex(r io.Reader, size int64, take func([]item) error) error {
	b, items := make([]byte, indexPiece*indexRecord), make([]item, 0, indexPiece)
	sum, all := xxhash.New(), indexCount(size)
	if size < indexSize(0) || all > indexSlabs || size != indexSize(all) {
		return fmt.Errorf("%w: it has %d bytes", errIndex, size)
	}
	next := func(n int) ([]byte, error) {
		_, err := io.ReadFull(r, b[:n])
		return b[:n], err
	}
	magic, err := next(len(indexMagic))
	if err != nil {
		return err
	}
	if string(magic) != indexMagic {
		return fmt.Errorf("%w: it does not begin as one", errIndex)
	}
	_, _ = sum.Write(magic)
	for left := all; left > 0; left -= len(items) {
		records, err := next(min(left, indexPiece) * indexRecord)
		if err != nil {
			return err
		}
		_, _ = sum.Write(records)
		items = items[:0]
		for ; len(records) > 0; records = records[indexRecord:] {
			i, ok := decodeItem(records)
			if !ok {
				return fmt.Errorf("%w: record %d is impossible", errIndex, all-left+len(items))
			}
			items = append(items, i)
		}
		if err := take(items); err != nil {
			return err
		}
	}
	tail, err := next(8)
	if err == nil && binary.LittleEndian.Uint64(tail) != sum.Sum64() {
		err = fmt.Errorf("%w: it does not match its checksum", errIndex)
	}
	return err
}

func decodeItem(b []byte) (i item, ok bool) {
	copy(i.key.Plan[:], b)
	n := func(k int) uint64 { return binary.LittleEndian.Uint64(b[16+8*k:]) }
	i.key.Rank, i.key.Step, i.size, i.sum, i.real = n(0), n(1), int64(n(2)), n(3), int64(n(4))
	// A file takes no more than its bytes in huge pages, and a map of them.
	const most = 1 << 50
	return i, 0 <= i.size && i.size < most && 0 <= i.real && i.real <= i.size+i.size/64+4<<20 && n(5) == 0
}

// load makes p the place, with the slabs that its index tells of, and reports
// whether there was one that can be used.
func (d *directory) load(p *place) bool {
	d.mu.Lock()
	d.mu.place, d.mu.origin = p, &p.origin
	d.mu.Unlock()
	err := d.do(func(j *job) error { return d.readIndex(j, p) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("nvme index not used: looking through the names", "dir", d.path, "cause", err)
		_ = d.do(func(*job) error { return p.root.Remove(indexName) })
	}
	return err == nil
}

// readIndex reads the index twice, for none of it is believed before all of it
// is known to be right.
func (d *directory) readIndex(j *job, p *place) error {
	f, err := p.open(indexName)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is %v", errIndex, info.Mode())
	}
	for _, take := range []func([]item) error{
		func([]item) error { return nil },
		func(items []item) error { return d.recall(p, items, indexCount(info.Size())) },
	} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := scanIndex(f, info.Size(), func(items []item) error {
			if !j.alive() {
				return errStuck
			}
			return take(items)
		}); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.place == p {
		d.mu.index = realOf(info)
		d.mu.used += d.mu.index
	}
	return nil
}

// recall enters slabs that the index tells of, which are of so many.
func (d *directory) recall(p *place, items []item, all int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.place != p {
		return errGone
	}
	d.mu.slabs.Spread(all) // at once: that moves nothing
	for _, i := range items {
		if d.mu.slabs.Find(i.key) == 0 {
			d.insert(i.label, i.real, false)
		}
	}
	return nil
}

// saveIndex writes the index, if it would say something new. Nothing syncs it:
// one that a power failure tore does not match its sum. Nor does it tell of one
// moment: what it says of a slab was so when it was written.
func (d *directory) saveIndex() error {
	most, change, p := d.stale()
	if p == nil {
		return nil
	}
	if _, err := d.writable(); err != nil {
		return err
	}
	if err := d.reserve(p, p.blocks(indexSize(most)), nil); err != nil {
		return err
	}
	return d.do(func(j *job) error {
		u, err := d.begin(p, indexSize(most), nil)
		if err != nil {
			return err
		}
		if err = d.fillIndex(j, u, most); err == nil {
			err = p.root.Rename(u.name, indexName)
		}
		if err != nil {
			d.discard(u)
			return d.refusal(refused(err))
		}
		u.file.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.mu.used -= d.mu.index
		d.mu.index, d.mu.saved = u.real, change
		return nil
	})
}

// stale is how many slabs the index is to tell of at most, and where, if it does
// not say all yet.
func (d *directory) stale() (most int, change uint64, p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, n := d.mu.place, d.mu.slabs.Len()
	if d.mu.change == d.mu.saved || n > indexSlabs || p == nil || !p.seen() {
		return 0, 0, nil
	}
	return n, d.mu.change, p
}

// fillIndex writes an index of so many slabs at most.
func (d *directory) fillIndex(j *job, u *unfinished, most int) error {
	d.mu.Lock()
	d.mu.slabs.rewind()
	d.mu.Unlock()
	size, err := writeIndex(u.file, func(items []item) ([]item, error) {
		if !j.alive() {
			return nil, errStuck
		}
		items = d.tellOn(items, most)
		most -= len(items)
		return items, nil
	})
	if err == nil {
		err = u.file.Truncate(size) // slabs have gone meanwhile
	}
	if err == nil {
		err = d.weigh(u)
	}
	if err == nil && !j.alive() {
		err = errStuck // and perhaps another one has been written since
	}
	return err
}

// tellOn appends what is known of the slabs that come next, so many at most, as
// far as there is room.
func (d *directory) tellOn(items []item, most int) []item {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.mu.slabs
	for len(items) < min(most, cap(items)) {
		id := t.next()
		if id == 0 {
			break
		}
		items = append(items, item{t.label(id), t.real(id)})
	}
	return items
}
