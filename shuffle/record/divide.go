package record

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"rankfs/meta"
)

// A Divided map has its records by part.
type Divided struct {
	Bytes     []byte
	AsWritten bool     // the records stand so already: Bytes are what comes after them
	Sums      []uint64 // the xxh64 of each piece that stands so, if they were taken on the way
	Offsets   []byte   // where each part begins, and where the last ends: little-endian numbers of 64 bits
}

// Divide divides a map into parts, by the hashes of keys; or by the offsets that its writer
// gave, if there are any; or if parts are to be ranges of keys, into so many slices. What it
// makes, and what it needs meanwhile, is in memory that it is given: of a map whose records
// stay where they are that of its samples; of others as many bytes as the map has, a newline
// more, and where records are to be sorted or combined entryBytes for each.
func (s Spec) Divide(ctx context.Context, b []byte, given []byte, parts uint64, memory Memory) (Divided, error) {
	d := division{Spec: s, ctx: ctx, from: b, given: given, parts: make([]share, parts)}
	if s.Ranges { // which are not known yet
		d.parts, d.slices = d.parts[:1], parts
	}
	err := d.addUp(memory)
	if err == nil && d.keys == nil {
		err = d.count()
	}
	if err != nil {
		return Divided{}, err
	}
	switch {
	case d.sorted && s.Ranges:
		return d.sliceAsWritten(memory)
	case d.sorted, !s.Ordered():
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

	sorted bool      // the records of each part are as they were written, and are not combined
	sums   sums      // of the slices that have begun, but for the last
	slices uint64    // that the one part is cut into
	starts []uint64  // where they do, as far as the records are sorted
	keys   *keyTable // of records that are combined, if there are few keys
	added  uint64    // how many bytes these come to

	touched byte // of bytes that are read to have them near
}

// A share is the part's share of a map.
type share struct {
	records uint64
	bytes   int64
	at      uint64 // where its next record comes: in the index, or in the bytes
}

// looks records are gone through between two looks whether the caller still waits.
const looks = 1 << 16

// each calls f for each record, with its place in the map, its key and its part.
func (d *division) each(f func(at int, r, key []byte, part uint64) error) error {
	if d.given != nil {
		return d.records(f)
	}
	return d.records(func(at int, r, key []byte, _ uint64) error {
		return f(at, r, key, partOf(key, uint64(len(d.parts))))
	})
}

// records is each, where the part is that of the writer's offsets, if there are any.
func (d *division) records(f func(at int, r, key []byte, part uint64) error) error {
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
		key := []byte(nil)
		if err == nil {
			key = d.key(r)
			err = d.valid(key)
		}
		if err != nil {
			return placed(number, at, err)
		}
		if err := f(at, r, key, part); err != nil {
			return err
		}
		at += len(r)
	}
	return nil
}

func (d *division) offset(i uint64) int { return int(binary.LittleEndian.Uint64(d.given[8*i:])) }

// addUp makes the keyTable of the map's records, and counts what its keys come to. There is none
// where keys are many, or where the map's writer has divided it: then a key may be in several
// parts.
func (d *division) addUp(memory Memory) error {
	if d.Combine == meta.NotCombined || d.given != nil {
		return nil
	}
	t, err := newKeyTable(d.Spec, d.from, memory)
	if err == nil {
		err = d.records(func(at int, r, key []byte, _ uint64) error { return t.add(at, r, key) })
	}
	if err == nil {
		err = t.addNext()
	}
	if errors.Is(err, errManyKeys) {
		memory.Free(t.room)
		return nil
	}
	if err != nil {
		return err
	}
	var out output
	c := combiner{Spec: d.Spec, out: &out}
	t.each(func(slot int, key []byte) {
		d.parts[partOf(key, uint64(len(d.parts)))].records++
		t.put(slot, &c)
	})
	d.keys, d.added = t, out.at
	return nil
}

// count counts what each part has, and finds whether that is sorted.
func (d *division) count() error {
	d.sorted = d.Ordered() && d.Combine == meta.NotCombined
	var last struct {
		part   uint64
		key    []byte
		prefix uint64
	}
	n := uint64(len(d.from))
	if n > 0 && d.Kind == meta.Lines && d.from[n-1] != '\n' {
		n++
	}
	border := d.border(0, n)
	return d.each(func(at int, r, key []byte, part uint64) error {
		p := &d.parts[part]
		p.records++
		p.bytes += d.size(r)
		if !d.sorted {
			return nil
		}
		for uint64(at) >= border {
			d.sums.next(d.from, at, len(d.starts) > 0)
			d.starts = append(d.starts, uint64(at))
			border = d.border(uint64(len(d.starts)), n)
		}
		if at-d.sums.at > sumBytes {
			d.sums.upTo(d.from, at)
		}
		prefix := d.prefix(key)
		if d.given == nil || part == last.part { // where keys rise over all parts, they do in each
			d.sorted = prefix > last.prefix || prefix == last.prefix && d.compare(last.key, key) <= 0
		}
		last.part, last.key, last.prefix = part, key, prefix
		return nil
	})
}

// stays reports whether records that are in order stand as they are to stand: those of each
// part together, and each line with its newline.
func (d *division) stays() bool {
	n := int64(0)
	for _, p := range d.parts {
		n += p.bytes
	}
	return (len(d.parts) == 1 || d.given != nil) && n == int64(len(d.from))
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
	if d.stays() {
		is.AsWritten = true
		return is, nil
	}
	if is.Bytes, err = memory.More(int64(at)); err != nil {
		return is, err
	}
	out := output{bytes: is.Bytes}
	c := combiner{Spec: d.Spec, out: &out}
	return is, d.each(func(_ int, r, key []byte, part uint64) error {
		out.at = d.parts[part].at
		c.putAsIs(r, key)
		d.parts[part].at = out.at
		return nil
	})
}

// index makes an entry of each record, or key that was added up, those of each part together.
func (d *division) index(memory Memory) ([]entry, error) {
	n := uint64(0)
	for i := range d.parts {
		d.parts[i].at = n
		n += d.parts[i].records
	}
	if n == 0 {
		return nil, nil
	}
	b, err := memory.More(int64(n) * entryBytes)
	if err != nil {
		return nil, err
	}
	all := unsafe.Slice((*entry)(unsafe.Pointer(unsafe.SliceData(b))), n)
	put := func(at int, key []byte, part uint64) {
		p := &d.parts[part]
		all[p.at] = entry{d.prefix(key), uint64(at)}
		p.at++
	}
	if d.keys != nil {
		d.keys.each(func(slot int, key []byte) { put(slot, key, partOf(key, uint64(len(d.parts)))) })
		return all, nil
	}
	return all, d.each(func(at int, _, key []byte, part uint64) error {
		put(at, key, part)
		return nil
	})
}

// of is a part's share of the index.
func (d *division) of(all []entry, part int) []entry {
	end := d.parts[part].at
	return all[end-d.parts[part].records : end]
}

// upTo is the map up to where the records of a part end, if its writer has put them together.
func (d *division) upTo(part int) []byte {
	if d.given == nil {
		return d.from
	}
	return d.from[:d.offset(uint64(part)+1)]
}

// sort sorts each part. Records of one key stay in the order in which they were written.
func (d *division) sort(all []entry) error {
	var left atomic.Bool
	defer context.AfterFunc(d.ctx, func() { left.Store(true) })()
	var slots []slot
	if d.keys != nil {
		slots = d.keys.slots
	}
	for i := range d.parts {
		s := sorter{d.Spec, d.upTo(i), slots, &left}
		s.sort(d.of(all, i))
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
	switch {
	case d.keys != nil:
		n = d.added
	case d.Combine != meta.NotCombined:
		var out output
		err = d.put(all, &out, func() {})
		n = out.at
	}
	if err != nil {
		return is, err
	}
	if d.Ranges {
		return d.slice(all, n, memory)
	}
	if is.Bytes, err = memory.More(int64(n)); err != nil {
		return is, err
	}
	out := output{bytes: is.Bytes}
	mark := func() { is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, out.at) }
	err = d.put(all, &out, mark)
	mark()
	return is, err
}

// put puts all records; at the begin of each part it calls begin.
func (d *division) put(all []entry, out *output, begin func()) error {
	c := combiner{Spec: d.Spec, out: out}
	for i := range d.parts {
		begin()
		from, of := d.upTo(i), d.of(all, i)
		for k, e := range of {
			if k%looks == 0 && d.ctx.Err() != nil {
				return d.ctx.Err()
			}
			if k%together == 0 {
				d.touch(of[k:min(k+together, len(of))])
			}
			if d.keys != nil {
				d.keys.put(int(e.at), &c)
				continue
			}
			r, err := d.first(from[e.at:])
			if err == nil {
				err = c.take(r, d.key(r))
			}
			if err != nil {
				return fmt.Errorf("record at byte %d: %w", e.at, err)
			}
		}
		c.end()
	}
	return nil
}

func (d *division) touch(some []entry) {
	sum := byte(0)
	for _, e := range some {
		if d.keys != nil {
			sum += byte(d.keys.slots[e.at].value)
		} else {
			sum += d.from[e.at]
		}
	}
	d.touched = sum
}

// border is where in n bytes a slice begins, with the record that begins there or is the next;
// of one that there is not beyond all of them.
func (d *division) border(slice, n uint64) uint64 {
	if slice >= d.slices {
		return math.MaxUint64
	}
	return slice * n / d.slices
}

// slice cuts the records, which have n bytes, into slices, and puts their samples after them.
func (d *division) slice(all []entry, n uint64, memory Memory) (is Divided, err error) {
	if is.Bytes, err = memory.More(int64(n + d.slices*sampleBytes)); err != nil {
		return is, err
	}
	out, samples := output{bytes: is.Bytes[:n]}, is.Bytes[n:]
	mark := func() { is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, out.at) }
	begun, border := uint64(0), d.border(0, n)
	out.each = func(key []byte) {
		for out.at >= border {
			mark()
			putSample(samples[begun*sampleBytes:], key)
			begun++
			border = d.border(begun, n)
		}
	}
	err = d.put(all, &out, func() {})
	for ; begun < d.slices; begun++ {
		mark()
		binary.LittleEndian.PutUint16(samples[begun*sampleBytes:], noSample)
	}
	mark()
	out.at = uint64(len(is.Bytes))
	mark()
	return is, err
}

// sliceAsWritten is slice of records that are in order: they stay as they stand, but if a
// newline is missing they are copied.
func (d *division) sliceAsWritten(memory Memory) (is Divided, err error) {
	n, at := uint64(d.parts[0].bytes), uint64(0) // where samples are in what is made
	if is.AsWritten = d.stays(); !is.AsWritten {
		at = n
	}
	if is.Bytes, err = memory.More(int64(at + d.slices*sampleBytes)); err != nil {
		return is, err
	}
	if !is.AsWritten {
		copy(is.Bytes, d.from)
		is.Bytes[n-1] = '\n'
	}
	for slice := range d.slices {
		start, sample := n, is.Bytes[at+slice*sampleBytes:]
		if slice < uint64(len(d.starts)) {
			start = d.starts[slice]
			r, err := d.first(d.from[start:])
			if err != nil {
				return is, err
			}
			putSample(sample, d.key(r))
		} else {
			binary.LittleEndian.PutUint16(sample, noSample)
		}
		is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, start)
	}
	if is.AsWritten {
		for uint64(len(d.sums.all)) < d.slices { // some may be empty
			d.sums.next(d.from, len(d.from), true)
		}
		is.Sums = d.sums.all
	}
	is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, n)
	is.Offsets = binary.LittleEndian.AppendUint64(is.Offsets, n+d.slices*sampleBytes)
	return is, nil
}
