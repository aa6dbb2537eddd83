package hdfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"rankfs/fetch/index"
	"rankfs/fetch/splits"
	"rankfs/meta"
)

// lines makes a record of each line with its terminator; what follows the last
// one is a record too. A line that crosses blocks belongs to the chunk in which
// it begins.
//
// Each split is searched for line feeds on its own. A line is the bytes between two
// line feeds, whichever splits they are in.
func lines() form {
	return form{name: "lines", read: plain, find: lineFeeds, check: checkLineFeeds, scan: func(ctx context.Context, s *scan) error {
		s.reuse(isFile)
		m := &lineMaker{scan: s, file: -1, chunk: -1}
		if err := s.each(ctx, m.merge); err != nil {
			return err
		}
		return m.end()
	}}
}

var scanBuffers = sync.Pool{New: func() any { return new([1 << 20]byte) }}

// lineFeeds finds the line feeds of a split: for each, how far it is from the
// one before, or from the split's beginning.
func lineFeeds(ctx context.Context, s *scan, p split, w *splits.Findings) error {
	buf := scanBuffers.Get().(*[1 << 20]byte)
	defer scanBuffers.Put(buf)
	r := s.source.open(ctx, s.files[p.file].path, p.from, p.to)
	defer r.Close()
	since := uint64(0)
	for {
		n, err := r.Read(buf[:])
		for rest := buf[:n]; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				since += uint64(len(rest))
				break
			}
			w.Put(since + uint64(i))
			rest, since = rest[i+1:], 0
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkLineFeeds reports whether all are in the split.
func checkLineFeeds(p split, _ int64, found *splits.Findings) error {
	for at := p.from; ; at++ {
		distance, more, err := found.Next()
		if err != nil || !more {
			return err
		}
		if distance >= uint64(p.to-at) {
			return fmt.Errorf("line feed %d behind byte %d %w: the split ends at %d", distance, at, meta.ErrCorrupt, p.to)
		}
		at += int64(distance)
	}
}

// A lineMaker turns line feeds into lines.
type lineMaker struct {
	scan   *scan
	file   int // being read; -1 before the first
	id     uint32
	begin  int64   // of the line
	chunk  int     // the split for which a chunk was begun
	splits []split // of the file, that begin at or before the line
}

// merge adds the lines of a split, by the line feeds that were found in it. Splits come in the
// order of the file; a line may begin in an earlier one.
func (m *lineMaker) merge(p split, found *splits.Findings) error {
	if p.file != m.file {
		if err := m.end(); err != nil {
			return err
		}
		m.file, m.begin, m.splits = p.file, 0, nil
		m.id = m.scan.addFile(p.file)
	}
	if row, ok := m.scan.known[p.number]; ok {
		return m.again(p, row)
	}
	m.splits = append(m.splits, p)
	for at := p.from; ; at++ {
		distance, more, err := found.Next()
		if err != nil || !more {
			return err
		}
		at += int64(distance)
		if err := m.line(at + 1); err != nil {
			return err
		}
	}
}

// again adds the lines that begin in a split, from the earlier index.
func (m *lineMaker) again(p split, row uint32) error {
	x := m.scan.source.earlier
	first, n := x.FileRecords(row)
	end := x.RecordAt(first, n, p.to)
	first = x.RecordAt(first, n, p.from)
	if first == end {
		return nil
	}
	m.scan.b.BeginChunk(p.hosts...)
	last := x.Extent(end - 1)
	m.begin = last.Off + last.Len
	return m.scan.b.Append(x, first, end-first, m.id)
}

// line adds the line that ends at end.
func (m *lineMaker) line(end int64) error {
	for len(m.splits) > 0 && m.splits[0].to <= m.begin {
		m.splits = m.splits[1:]
		m.chunk = -1
	}
	if p := m.splits[0]; m.chunk != p.number {
		m.scan.b.BeginChunk(p.hosts...)
		m.chunk = p.number
	}
	err := m.scan.b.Add(index.Extent{File: m.id, Off: m.begin, Len: end - m.begin})
	m.begin = end
	return err
}

// end adds the line after the last line feed of the file.
func (m *lineMaker) end() error {
	if m.file < 0 || m.begin == m.scan.files[m.file].Size {
		return nil
	}
	return m.line(m.scan.files[m.file].Size)
}

// lineChunks makes one record of all lines that begin in a split. Of each split
// it reads the beginning, up to the first line feed.
func lineChunks() form {
	return form{name: "chunks", read: plain, find: firstLine, check: checkFirstLine, scan: func(ctx context.Context, s *scan) error {
		s.b.Uncounted("lines")
		c := &chunker{scan: s}
		if err := s.each(ctx, c.merge); err != nil {
			return err
		}
		return c.end()
	}}
}

// firstLine finds where the first line of a split begins, if one does.
func firstLine(ctx context.Context, s *scan, p split, w *splits.Findings) error {
	if p.from == 0 {
		w.Put(0)
		return nil
	}
	const maxRead = 64 << 10 // to read at once: lines are mostly shorter
	buf := scanBuffers.Get().(*[1 << 20]byte)
	defer scanBuffers.Put(buf)
	for at := p.from - 1; at < p.to-1; { // a line may begin right behind one that ends the split before
		end := min(at+maxRead, p.to-1)
		r := s.source.open(ctx, s.files[p.file].path, at, end)
		_, err := io.ReadFull(r, buf[:end-at])
		r.Close()
		if err != nil {
			return err
		}
		if i := bytes.IndexByte(buf[:end-at], '\n'); i >= 0 {
			w.Put(uint64(at + int64(i) + 1))
			return nil
		}
		at = end
	}
	return nil
}

// checkFirstLine reports whether there is one at most, and it begins in the split. A file
// begins with a line.
func checkFirstLine(p split, _ int64, found *splits.Findings) error {
	begin, any, err := found.Next()
	if err != nil {
		return err
	}
	if !any && p.from > 0 {
		return nil
	}
	_, more, err := found.Next()
	if inside := begin >= uint64(p.from) && begin < uint64(p.to); err != nil || !any || more || !inside || p.from == 0 && begin > 0 {
		return fmt.Errorf("first line at %d of %v %w (%v)", begin, p, meta.ErrCorrupt, err)
	}
	return nil
}

// A chunker turns the first lines of splits into chunks.
type chunker struct {
	scan  *scan
	last  *split // in which a line begins; its chunk is not added yet
	begin int64  // of that line
	file  uint32
}

func (c *chunker) merge(p split, found *splits.Findings) error {
	begin, any, err := found.Next()
	if err != nil || !any {
		return err
	}
	if c.last != nil && c.last.file == p.file {
		if err := c.add(int64(begin)); err != nil {
			return err
		}
	} else {
		if err := c.end(); err != nil {
			return err
		}
		c.file = c.scan.addFile(p.file)
	}
	c.last, c.begin = &p, int64(begin)
	return nil
}

// add makes the chunk of the lines up to end.
func (c *chunker) add(end int64) error {
	c.scan.b.BeginChunk(c.last.hosts...)
	return c.scan.b.Add(index.Extent{File: c.file, Off: c.begin, Len: end - c.begin})
}

// end makes the last chunk of the file.
func (c *chunker) end() error {
	if c.last == nil {
		return nil
	}
	return c.add(c.scan.files[c.last.file].Size)
}
