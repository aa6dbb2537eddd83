package hdfs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
	"rankfs/fetch/sequence"
	"rankfs/fetch/splits"
	"rankfs/meta"
	"rankfs/meta/stall"
)

// sequences makes a record of each value of SequenceFiles. Most values stand
// nowhere as they are: in the index each split of a file is a file of its own,
// which has the split's values one after another.
func sequences() form {
	return form{name: "sequence", read: decode, whole: true, find: values, check: checkValues, scan: func(ctx context.Context, s *scan) error {
		s.reuse(isSplit)
		return s.each(ctx, s.addValues)
	}}
}

// values finds the length of each value of a split and, last, how far into the
// file the split reaches.
func values(ctx context.Context, s *scan, p split, w *splits.Findings) error {
	f := s.files[p.file]
	h, err := s.source.header(ctx, f.path, f.Size)
	if err != nil {
		return err
	}
	r := s.source.open(ctx, f.path, p.from, f.Size)
	defer r.Close()
	run := h.Split(r, f.Size, p.from, p.to)
	err = run.Scan(ctx, func(_, length int64) error {
		w.Put(uint64(length))
		return nil
	})
	w.Put(uint64(run.Offset()))
	if err != nil {
		return fmt.Errorf("%q: %w", f.path, err)
	}
	return nil
}

// checkValues reports whether values of such lengths can be of a split that reaches so
// far. Whether they are shows when they are read.
func checkValues(p split, size int64, found *splits.Findings) error {
	const maxUnpacked = 1 << 47 // of a split, unpacked
	total, end := uint64(0), uint64(0)
	for n := 0; ; n++ {
		v, more, err := found.Next()
		switch {
		case err != nil:
			return err
		case !more && n > 0 && end <= uint64(size) && (end > uint64(p.from) || n == 1):
			return nil
		case !more:
			return fmt.Errorf("%d values up to byte %d of %d %w", n, end, size, meta.ErrCorrupt)
		}
		if total, end = total+end, v; v > maxUnpacked || total > maxUnpacked {
			return fmt.Errorf("list of values of a split %w: one has %d bytes, all before it %d", meta.ErrCorrupt, v, total)
		}
	}
}

// addValues enters a split as a file, and its values as records.
func (s *scan) addValues(p split, found *splits.Findings) error {
	if row, ok := s.known[p.number]; ok {
		return s.valuesAgain(p, row)
	}
	total, end, n := int64(0), int64(0), 0
	for ; ; n++ {
		v, more, err := found.Next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		total, end = total+end, int64(v)
	}
	if n < 2 { // no values: a split within one large record
		return nil
	}
	if err := found.Rewind(); err != nil {
		return err
	}
	f := s.files[p.file]
	id := s.b.AddFile(index.File{Path: f.path, Size: total, Stamp: f.stamp() + splitMark(p.from, p.to, end)})
	s.b.BeginChunk(p.hosts...)
	for at := int64(0); n > 1; n-- {
		length, _, err := found.Next()
		if err != nil {
			return err
		}
		if err := s.b.Add(index.Extent{File: id, Off: at, Len: int64(length)}); err != nil {
			return err
		}
		at += int64(length)
	}
	return nil
}

// decode reads values of one split of a file.
func decode(ctx context.Context, s *Source, want fileRead) error {
	f := s.index.File(want.file)
	first := want.segments[0]
	if f.Size == 0 || len(want.segments) == 1 && len(first.extents) == 1 && first.extents[0].Len == f.Size {
		return s.decodeSplit(ctx, f, first.dst)
	}
	// Some values of many: all have to be decoded. This is for a node whose cache has no
	// room for whole splits.
	all, err := unix.Mmap(-1, 0, int(f.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("room for %d bytes of %q: %w", f.Size, f.Path, err)
	}
	defer unix.Munmap(all)
	if err := s.decodeSplit(ctx, f, all); err != nil {
		return err
	}
	for _, p := range want.segments {
		at := 0
		for _, e := range p.extents {
			at += copy(p.dst[at:], all[e.Off:e.Off+e.Len])
		}
	}
	return nil
}

func (s *Source) decodeSplit(ctx context.Context, f index.File, dst []byte) error {
	var from, to, end int64
	if _, err := fmt.Sscanf(strings.TrimPrefix(f.Stamp, wholeStamp(f.Stamp)), ";part=%d-%d-%d", &from, &to, &end); err != nil {
		return fmt.Errorf("index of %q %w: split %q", f.Path, meta.ErrCorrupt, f.Stamp)
	}
	size, err := sizeIn(f.Stamp)
	if err != nil {
		return err
	}
	h, err := s.header(ctx, f.Path, size)
	if err != nil {
		return err
	}
	r := s.open(ctx, f.Path, from, end)
	r.places = s.places
	defer r.Close()
	defer stall.Enter(ctx, stall.Decode).Leave(int64(len(dst)))
	if err := h.Split(received{r}, size, from, to).Copy(ctx, dst); err != nil {
		return fmt.Errorf("%q: %w", f.Path, err)
	}
	return nil
}

// A received stream is one that is unpacked as it comes: its part of the time
// is the source's.
type received struct{ *reader }

func (r received) Read(p []byte) (int, error) {
	defer stall.Enter(r.ctx, stall.Source).Leave(0)
	return r.reader.Read(p)
}

// header reads the head of a SequenceFile.
func (s *Source) header(ctx context.Context, path string, size int64) (sequence.Header, error) {
	h, err := sequence.ReadHeader(readerAt{s, ctx, path, size}, size)
	if err != nil {
		return h, fmt.Errorf("%q: %w", path, err)
	}
	return h, nil
}

// A readerAt reads a file here and there.
type readerAt struct {
	source *Source
	ctx    context.Context
	path   string
	size   int64
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	end := min(r.size, off+int64(len(p)))
	if off >= end {
		return 0, io.EOF
	}
	in := r.source.open(r.ctx, r.path, off, end)
	in.places = r.source.places
	defer in.Close()
	n, err := io.ReadFull(in, p[:end-off])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}
