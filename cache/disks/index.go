package disks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// The index file has a header, a record for each slab, the one used longest
// ago first, and the sum of both. All numbers are little-endian.
const (
	indexName   = ".index"
	indexMagic  = "rankfs slabs 1\n\x00"
	indexHeader = len(indexMagic) + 8 // and how many slabs
	indexRecord = 64
	// indexSlabs: of 1 MiB each, 4 TiB. With more, names are looked through.
	indexSlabs = 1 << 22
	indexMost  = indexHeader + indexSlabs*indexRecord + 8
)

// An item is what the index says of a slab.
type item struct {
	label
	real int64
}

// encodeIndex makes an index of so many items at most.
func encodeIndex(items iter.Seq[item], most int) []byte {
	b := make([]byte, indexHeader, indexHeader+most*indexRecord+8)
	copy(b, indexMagic)
	for i := range items {
		b = append(b, i.key.Plan[:]...)
		for _, n := range [...]uint64{i.key.Rank, i.key.Step, uint64(i.size), i.sum, uint64(i.real), 0} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
	}
	binary.LittleEndian.PutUint64(b[len(indexMagic):], uint64((len(b)-indexHeader)/indexRecord))
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

var errIndex = fmt.Errorf("%w index", meta.ErrCorrupt)

// decodeIndex refuses what encodeIndex would not write.
func decodeIndex(b []byte) ([]item, error) {
	if len(b) < indexHeader+8 || string(b[:len(indexMagic)]) != indexMagic {
		return nil, fmt.Errorf("%w: it does not begin as one", errIndex)
	}
	body, tail := b[:len(b)-8], b[len(b)-8:]
	if xxhash.Sum64(body) != binary.LittleEndian.Uint64(tail) {
		return nil, fmt.Errorf("%w: it does not match its checksum", errIndex)
	}
	records := body[indexHeader:]
	if count := binary.LittleEndian.Uint64(body[len(indexMagic):]); len(records)%indexRecord != 0 || count != uint64(len(records)/indexRecord) {
		return nil, fmt.Errorf("%w: it has not %d records", errIndex, count)
	}
	items := make([]item, 0, len(records)/indexRecord)
	for ; len(records) > 0; records = records[indexRecord:] {
		i, ok := decodeItem(records)
		if !ok {
			return nil, fmt.Errorf("%w: record %d is impossible", errIndex, len(items))
		}
		items = append(items, i)
	}
	return items, nil
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
// whether there was one.
func (d *directory) load(p *place) bool {
	items, real, ok := d.recall(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.place, d.mu.home = p, &p.home
	d.mu.index = real
	d.mu.used += real
	d.mu.slabs.spread(len(items))
	for _, i := range items {
		if d.mu.slabs.find(i.key) == 0 {
			d.insert(i.label, i.real, false)
		}
	}
	return ok
}

// recall is what the index says, if there is one that can be used.
func (d *directory) recall(p *place) ([]item, int64, bool) {
	var real int64
	items, err := watch(d, func(*job) (items []item, err error) {
		items, real, err = readIndex(p)
		return items, err
	}, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, false
	}
	if err != nil {
		d.log.Warn("nvme index not used: looking through the names", "dir", d.path, "cause", err)
		_ = d.do(func(*job) error { return p.root.Remove(indexName) })
		return nil, 0, false
	}
	return items, real, true
}

func readIndex(p *place) (items []item, real int64, err error) {
	f, err := p.open(indexName)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > int64(indexMost) {
		return nil, 0, fmt.Errorf("%w: it is %v of %d bytes", errIndex, info.Mode(), info.Size())
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, 0, err
	}
	items, err = decodeIndex(b)
	return items, realOf(info), err
}

// saveIndex writes the index, if it would say something new. Nothing syncs it:
// one that a power failure tore does not match its sum.
func (d *directory) saveIndex() error {
	b, change, p := d.encode()
	if b == nil {
		return nil
	}
	if _, err := d.writable(); err != nil {
		return err
	}
	if err := d.reserve(p, p.blocks(int64(len(b))), nil); err != nil {
		return err
	}
	return d.do(func(j *job) error {
		u, err := d.begin(p, int64(len(b)), nil)
		if err != nil {
			return err
		}
		if _, err = u.file.WriteAt(b, 0); err == nil && !j.alive() {
			err = errStuck // and perhaps another one has been written since
		}
		if err == nil {
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

// encode is what the index is to be, or nil if it is that already.
func (d *directory) encode() ([]byte, uint64, *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, t := d.mu.place, d.mu.slabs
	if d.mu.change == d.mu.saved || t.slabs > indexSlabs || p == nil || !p.seen() {
		return nil, 0, nil
	}
	return encodeIndex(func(yield func(item) bool) {
		for id := range t.oldest() {
			if !yield(item{t.label(id), t.real(id)}) {
				return
			}
		}
	}, t.slabs), d.mu.change, p
}
