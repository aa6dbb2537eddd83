package disks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// The index file has a header, a row for each slab, the one used longest
// ago first, and the sum of both. All numbers are little-endian.
const (
	indexName  = ".index"
	indexMagic = "rankfs slabs 2\n\x00"
	indexRow   = 64
	indexBlock = 1024 // rows, which are read and written together
	// indexSlabs: of 1 MiB each, 256 TiB. Memory for what is known of so many,
	// 15 GB, ends before.
	indexSlabs = 1 << 28
)

// An item is the entry of a slab in the index.
type item struct {
	label
	real int64
}

// indexSize is the length of an index of n items.
func indexSize(n int) int64 { return int64(len(indexMagic) + n*indexRow + 8) }

// indexCount is the number of items in an index of so many bytes.
func indexCount(size int64) int { return int((size - indexSize(0)) / indexRow) }

// writeIndex writes an index of the items that next has, some at a time, until it has
// none, and returns how long the index is. Next appends to an empty slice.
func writeIndex(w io.Writer, next func([]item) ([]item, error)) (int64, error) {
	b, items := make([]byte, 0, indexBlock*indexRow), make([]item, 0, indexBlock)
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
	b = append(b, i.key.Series[:]...)
	for _, n := range [...]uint64{i.key.Rank, i.key.Step, uint64(i.size), i.sum, uint64(i.real), 0} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

var errIndex = meta.Worded(meta.ErrCorrupt, "index is corrupt")

// scanIndex gives take the items of an index, by and by. It refuses what
// writeIndex would not write, but knows only at the end: the sum is there.
func scanIndex(r io.Reader, size int64, take func([]item) error) error {
	b, items := make([]byte, indexBlock*indexRow), make([]item, 0, indexBlock)
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
		rows, err := next(min(left, indexBlock) * indexRow)
		if err != nil {
			return err
		}
		_, _ = sum.Write(rows)
		items = items[:0]
		for ; len(rows) > 0; rows = rows[indexRow:] {
			i, ok := decodeItem(rows)
			if !ok {
				return fmt.Errorf("%w: row %d is impossible", errIndex, all-left+len(items))
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
	copy(i.key.Series[:], b)
	n := func(k int) uint64 { return binary.LittleEndian.Uint64(b[16+8*k:]) }
	i.key.Rank, i.key.Step, i.size, i.sum, i.real = n(0), n(1), int64(n(2)), n(3), int64(n(4))
	// A file takes no more than its bytes in huge pages, and a map of them.
	const maxSize = 1 << 50
	return i, 0 <= i.size && i.size < maxSize && 0 <= i.real && i.real <= i.size+i.size/64+4<<20 && n(5) == 0
}

// An index is the index file of a directory: what it says of the slabs, and what they
// are that it does not say yet. saved is guarded by the slabs' lock.
type index struct {
	slabs   *slabs
	health  *health
	evictor *evictor
	saved   uint64 // the slabs' change, when it was written
}

// load enters the slabs that the index of their place tells of, and reports
// whether there was one that can be used.
func (x *index) load(p *place) bool {
	err := x.health.do(func(w *slowdisk.Work) error { return x.read(w, p) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.health.Log.Warn("nvme index not used: looking through the names", "dir", x.health.Dir, "cause", err)
		_ = x.health.call(func() error { return p.Root.Remove(indexName) })
	}
	return err == nil
}

// read reads the index twice, for none of it is believed before all of it
// is known to be right.
func (x *index) read(w *slowdisk.Work, p *place) error {
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
		func(items []item) error { return x.recall(p, items, indexCount(info.Size())) },
	} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := scanIndex(w.File(f), info.Size(), take); err != nil {
			return err
		}
	}
	mu := &x.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	if mu.place == p {
		mu.budget.Add(realOf(info))
		mu.setIndex(realOf(info))
	}
	return nil
}

// recall enters slabs that the index tells of, some of so many: the table gets room for all.
func (x *index) recall(p *place, items []item, all int) error {
	mu := &x.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	if mu.place != p {
		return diskdir.ErrGone
	}
	mu.Spread(all) // at once: that moves nothing
	for _, i := range items {
		if mu.Find(i.key) == 0 {
			mu.recall(i.label, i.real, false)
		}
	}
	return nil
}

// save writes the index, if it would say something new. Nothing syncs it:
// one that a power failure tore does not match its sum. Nor does it tell of one
// moment: what it says of a slab was so when it was written.
func (x *index) save() error {
	most, change, p := x.stale()
	if p == nil {
		return nil
	}
	if err := x.health.Suspended(); err != nil {
		return meta.Worded(ErrNoRoom, "%w", err)
	}
	size := indexSize(most)
	_, err := withRoom(x.evictor, p, size, nil, slowdisk.Plain(func(w *slowdisk.Work) error {
		u, err := x.evictor.begin(w, p, size, nil)
		if err != nil {
			return err
		}
		if err = x.fill(w, u, most); err != nil {
			u.drop(w)
			return refused(err)
		}
		u.Close()
		x.wrote(p, u.file.Takes, change)
		return nil
	}), nil)
	return err
}

// stale is the number of slabs that the index is to tell of at most, and where, if it does
// not say all yet.
func (x *index) stale() (most int, change uint64, p *place) {
	mu := &x.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	p, n := mu.place, mu.Len()
	if mu.change == x.saved || n > indexSlabs || p == nil || !p.seen() {
		return 0, 0, nil
	}
	return n, mu.change, p
}

// wrote notes that the index says what was so at a change, and what it takes.
func (x *index) wrote(p *place, real int64, change uint64) {
	mu := &x.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	if mu.place != p { // it is gone meanwhile, with its files
		mu.budget.Add(-real)
		return
	}
	mu.setIndex(real)
	x.saved = change
}

// fill writes an index of so many slabs at most.
func (x *index) fill(w *slowdisk.Work, u *unfinished, most int) error {
	x.rewind()
	size, err := writeIndex(u.file.Writer(w, 0), func(items []item) ([]item, error) {
		items = x.tellOn(items, most)
		most -= len(items)
		return items, nil
	})
	if err != nil {
		return err
	}
	err = w.Do(func() error {
		if err := u.file.Bytes.Truncate(size); err != nil { // slabs have gone meanwhile
			return err
		}
		return u.weigh()
	})
	if err != nil {
		return err
	}
	// Not once it is left behind: perhaps another one has been written since.
	return u.seal(w, indexName)
}

// rewind has tellOn begin with the slab used longest ago.
func (x *index) rewind() {
	x.slabs.mu.Lock()
	defer x.slabs.mu.Unlock()
	x.slabs.mu.rewind()
}

// tellOn appends what is known of the slabs that come next, so many at most, as
// far as there is room.
func (x *index) tellOn(items []item, most int) []item {
	mu := &x.slabs.mu
	mu.Lock()
	defer mu.Unlock()
	for len(items) < min(most, cap(items)) {
		id := mu.next()
		if id == 0 {
			break
		}
		items = append(items, item{mu.label(id), mu.real(id)})
	}
	return items
}
