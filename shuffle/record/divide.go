package record

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"rankfs/meta"
)

// A Divided map has its records by part.
type Divided struct {
	Bytes   []byte
	Offsets []byte // where each part begins, and where the last ends: little-endian numbers of 64 bits
}

// Divide divides a map into parts, by the hashes of keys; or by the offsets that its writer
// gave, if there are any; or if parts are to be ranges of keys, into so many slices. What it makes, and what it needs meanwhile, is in memory that it
// is given: as many bytes as the map has, a newline more, and where records are sorted
// entryBytes for each.
func (s Spec) Divide(ctx context.Context, b []byte, given []byte, parts uint64, memory Memory) (Divided, error) {
	d := division{Spec: s, ctx: ctx, from: b, given: given, parts: make([]share, parts)}
	if s.Ranges { // which are not known yet
		d.parts, d.slices = d.parts[:1], parts
	}
	if err := d.count(); err != nil {
		return Divided{}, err
	}
	if !s.Ordered() {
		return d.group(memory)
	}
	index, err := d.index(memory)
	if err != nil {
		return Divided{}, err
	}
	if err := d.sort(index); err != nil {
		return Divided{}, err
	}
	return d.emit(index, memory)
}

// A division is the work of one Divide.
type division struct {
	Spec
	ctx   context.Context
	from  []byte
	given []byte
	parts []share

	slices uint64 // that the one part is cut into
}

// A share is what a part has of a map.
type share struct {
	records uint64
	bytes   int64
	at      uint64 // where its next record comes: in the index, or in the bytes
}

// looks is after how many records it is looked whether anybody still waits.
const looks = 1 << 16

// each calls f for each record, with its place in the map, its key and its part.
func (d *division) each(f func(at int, r row, key []byte, part uint64) error) error {
	part := uint64(0)
	for at, number := 0, 0; at < len(d.from); number++ {
		if number%looks == 0 && d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		end := len(d.from)
		if d.given != nil {
			for d.offset(part+1) <= at {
				part++
			}
			end = d.offset(part + 1)
		}
		r, err := d.first(d.from[at:end])
		key := d.key(r.payload)
		if err == nil {
			err = d.valid(key)
		}
		if err == nil {
			if d.given == nil {
				part = partOf(key, uint64(len(d.parts)))
			}
			err = f(at, r, key, part)
		}
		if err != nil {
			return fmt.Errorf("record %d, at byte %d: %w", number, at, err)
		}
		at += len(r.whole)
	}
	return nil
}

func (d *division) offset(i uint64) int { return int(binary.LittleEndian.Uint64(d.given[8*i:])) }

func (d *division) count() error {
	return d.each(func(_ int, r row, _ []byte, part uint64) error {
		d.parts[part].records++
		d.parts[part].bytes += d.size(r)
		return nil
	})
}

// group puts the records of each part together, in the order in which they are.
func (d *division) group(memory Memory) (is Divided, err error) {
	at := uint64(0)
	for i := range d.parts {
		d.parts[i].at = at
		is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, at)
		at += uint64(d.parts[i].bytes)
	}
	is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, at)
	if is.Bytes, err = memory(int64(at)); err != nil {
		return is, err
	}
	c := combiner{Spec: d.Spec, put: writer(is.Bytes, &at)}
	return is, d.each(func(_ int, r row, key []byte, part uint64) error {
		at = d.parts[part].at
		c.putRow(r, key)
		d.parts[part].at = at
		return nil
	})
}

// writer puts bytes one after the other, from *at on; or if there is no memory for them says
// how many they are.
func writer(b []byte, at *uint64) func(key []byte, pieces ...[]byte) {
	return func(_ []byte, pieces ...[]byte) {
		for _, p := range pieces {
			if b != nil {
				copy(b[min(*at, uint64(len(b))):], p)
			}
			*at += uint64(len(p))
		}
	}
}

// An entry is a record in the index by which records are sorted.
type entry struct {
	prefix uint64
	at     uint64 // in the map
	size   uint64
}

// entryBytes is what the index has of a record.
const entryBytes = int64(unsafe.Sizeof(entry{}))

// index makes an entry of each record, those of each part together.
func (d *division) index(memory Memory) ([]entry, error) {
	n := uint64(0)
	for i := range d.parts {
		d.parts[i].at = n
		n += d.parts[i].records
	}
	if n == 0 {
		return nil, nil
	}
	b, err := memory(int64(n) * entryBytes)
	if err != nil {
		return nil, err
	}
	all := unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(b))), n)
	return all, d.each(func(at int, r row, key []byte, part uint64) error {
		p := &d.parts[part]
		all[p.at] = entry{d.prefix(key), uint64(at), uint64(len(r.whole))}
		p.at++
		return nil
	})
}

// of is a part's share of the index.
func (d *division) of(all []entry, part int) []entry {
	end := d.parts[part].at
	return all[end-d.parts[part].records : end]
}

// keyOf is the key of a record in the index.
func (d *division) keyOf(e entry) (row, []byte) {
	r := d.again(d.from[e.at : e.at+e.size])
	return r, d.key(r.payload)
}

// sort sorts each part. Records of one key stay in the order in which they were written.
func (d *division) sort(all []entry) error {
	var ended atomic.Bool
	defer context.AfterFunc(d.ctx, func() { ended.Store(true) })()
	for i := range d.parts {
		if ended.Load() {
			break
		}
		slices.SortFunc(d.of(all, i), func(a, b entry) int {
			if c := cmp.Compare(a.prefix, b.prefix); c != 0 || ended.Load() {
				return c
			}
			_, x := d.keyOf(a)
			_, y := d.keyOf(b)
			return cmp.Or(d.compare(x, y), cmp.Compare(a.at, b.at))
		})
	}
	return d.ctx.Err()
}

// emit puts the records in the order of the index. Combined they have fewer bytes, so then
// they are put nowhere before, to know how many these are.
func (d *division) emit(all []entry, memory Memory) (is Divided, err error) {
	n := uint64(0)
	for _, p := range d.parts {
		n += uint64(p.bytes)
	}
	if d.Combine != meta.NotCombined {
		n = 0
		err = d.put(all, writer(nil, &n), func() {})
	}
	if err != nil {
		return is, err
	}
	if d.Ranges {
		return d.slice(all, n, memory)
	}
	if is.Bytes, err = memory(int64(n)); err != nil {
		return is, err
	}
	at := uint64(0)
	mark := func() { is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, at) }
	err = d.put(all, writer(is.Bytes, &at), mark)
	mark()
	return is, err
}

// put puts all records; at the begin of each part it calls begin.
func (d *division) put(all []entry, put func(key []byte, pieces ...[]byte), begin func()) error {
	c := combiner{Spec: d.Spec, put: put}
	for i := range d.parts {
		begin()
		for k, e := range d.of(all, i) {
			if k%looks == 0 && d.ctx.Err() != nil {
				return d.ctx.Err()
			}
			r, key := d.keyOf(e)
			if err := c.take(r, key); err != nil {
				return fmt.Errorf("record at byte %d: %w", e.at, err)
			}
		}
		c.end()
	}
	return nil
}

// slice cuts the records, which have n bytes, into slices, and puts their samples after them.
func (d *division) slice(all []entry, n uint64, memory Memory) (is Divided, err error) {
	if is.Bytes, err = memory(int64(n + d.slices*sampleBytes)); err != nil {
		return is, err
	}
	at, samples := uint64(0), is.Bytes[n:]
	mark := func() { is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, at) }
	begun := uint64(0)
	write := writer(is.Bytes[:n], &at)
	err = d.put(all, func(key []byte, pieces ...[]byte) {
		for ; begun < d.slices && at >= begun*n/d.slices; begun++ {
			mark()
			putSample(samples[begun*sampleBytes:], key)
		}
		write(key, pieces...)
	}, func() {})
	for ; begun < d.slices; begun++ {
		mark()
		binary.LittleEndian.PutUint16(samples[begun*sampleBytes:], noSample)
	}
	mark()
	at = uint64(len(is.Bytes))
	mark()
	return is, err
}
