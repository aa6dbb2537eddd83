package index

import (
	"fmt"
	"sort"

	"rankfs/meta"
)

// Append adds n records of another index, from first on, as Add and AddStride would
// add them one by one. All are of one file in x, and become records of the given file
// here. The caller begins files and chunks.
//
// So an index can be put together of indexes that were built apart, and equals to
// the byte the index that one builder would have written.
func (b *Builder) Append(x *Index, first, n uint64, file uint32) error {
	of := uint32(0)
	if first < x.h.records {
		of = x.Extent(first).File
	}
	return b.add(x, first, n, func(f uint32) (uint32, error) {
		if f != of {
			return 0, fmt.Errorf("run of records of files %d and %d %w: append those of one at a time", of, f, meta.ErrInvalid)
		}
		return file, nil
	})
}

// Copy is Append for records of any files, which have the same numbers here as in x.
func (b *Builder) Copy(x *Index, first, n uint64) error {
	return b.add(x, first, n, func(f uint32) (uint32, error) { return f, nil })
}

// add adds n records of another index, from first on; number says which file here is a
// file there.
func (b *Builder) add(x *Index, first, n uint64, number func(file uint32) (uint32, error)) error {
	if n > x.h.records || first > x.h.records-n {
		return b.fail(fmt.Errorf("records %d+%d of another index %w: it has %d", first, n, meta.ErrInvalid, x.h.records))
	}
	for end := first + n; first < end && b.err == nil; {
		r, last := x.runOf(first)
		last = min(last, end)
		if r.length > 0 {
			file, err := number(r.file)
			b.fail(err)
			b.AddStride(file, r.extent(first).Off, r.length, last-first)
			first = last
		}
		for ; first < last && b.err == nil; first++ {
			e := x.Extent(first)
			file, err := number(e.File)
			b.fail(err)
			b.Add(Extent{file, e.Off, e.Len})
		}
	}
	return b.err
}

// FileRecords returns the records of file i: n from first on. The records of the
// index must be in the order of their files.
func (x *Index) FileRecords(i uint32) (first, n uint64) {
	first = x.search(0, x.h.records, func(e Extent) bool { return e.File >= i })
	return first, x.search(first, x.h.records, func(e Extent) bool { return e.File > i }) - first
}

// RecordAt is the first of n records of one file, from first on and in the order of
// their places, that begins at off or behind it; first+n if none does.
func (x *Index) RecordAt(first, n uint64, off int64) uint64 {
	return x.search(first, first+n, func(e Extent) bool { return e.Off >= off })
}

// search is the first record from one to before another for which is, which it is for
// all after it too.
func (x *Index) search(from, to uint64, is func(Extent) bool) uint64 {
	return from + uint64(sort.Search(int(to-from), func(n int) bool { return is(x.Extent(from + uint64(n))) }))
}
