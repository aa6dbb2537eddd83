package hdfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
)

// lines makes a record of each line with its terminator; what follows the last
// one is a record too. A line that crosses blocks belongs to the chunk in which
// it begins.
//
// Each part is searched for line feeds on its own. A line is the bytes between two
// line feeds, whichever parts they are in.
func lines() form {
	return form{name: "lines", read: plain, scan: func(ctx context.Context, s *scan) error {
		s.reuse(isFile)
		m := &liner{scan: s, file: -1, chunk: -1}
		if err := s.each(ctx, s.lineFeeds, m.merge); err != nil {
			return err
		}
		return m.end()
	}}
}

var scanBuffers = sync.Pool{New: func() any { return new([1 << 20]byte) }}

// lineFeeds finds the line feeds of a part: for each, how far it is from the
// one before, or from the part's beginning.
func (s *scan) lineFeeds(ctx context.Context, p part, w *findings) error {
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
			w.put(since + uint64(i))
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

// A liner turns line feeds into lines.
type liner struct {
	scan  *scan
	file  int // being read; -1 before the first
	id    uint32
	begin int64  // of the line
	chunk int    // the part for which a chunk was begun
	parts []part // of the file, that begin at or before the line
}

func (m *liner) merge(p part, found *findings) error {
	if p.file != m.file {
		if err := m.end(); err != nil {
			return err
		}
		m.file, m.begin, m.parts = p.file, 0, nil
		m.id = m.scan.addFile(p.file)
	}
	if row, ok := m.scan.known[p.number]; ok {
		return m.again(p, row)
	}
	m.parts = append(m.parts, p)
	for at := p.from; ; at++ {
		distance, more, err := found.next()
		if err != nil || !more {
			return err
		}
		at += int64(distance)
		if err := m.line(at + 1); err != nil {
			return err
		}
	}
}

// line adds the line that ends at end.
func (m *liner) line(end int64) error {
	for len(m.parts) > 0 && m.parts[0].to <= m.begin {
		m.parts = m.parts[1:]
		m.chunk = -1
	}
	if p := m.parts[0]; m.chunk != p.number {
		m.scan.b.BeginChunk(p.hosts...)
		m.chunk = p.number
	}
	err := m.scan.b.Add(index.Extent{File: m.id, Off: m.begin, Len: end - m.begin})
	m.begin = end
	return err
}

// end adds the line after the last line feed of the file.
func (m *liner) end() error {
	if m.file < 0 || m.begin == m.scan.files[m.file].Size {
		return nil
	}
	return m.line(m.scan.files[m.file].Size)
}

// lineChunks makes one record of all lines that begin in a part. Of each part
// it reads the beginning, up to the first line feed.
func lineChunks() form {
	return form{name: "chunks", read: plain, scan: func(ctx context.Context, s *scan) error {
		s.b.Uncounted("lines")
		c := &chunker{scan: s}
		if err := s.each(ctx, s.firstLine, c.merge); err != nil {
			return err
		}
		return c.end()
	}}
}

// firstLine finds where the first line of a part begins, if one does.
func (s *scan) firstLine(ctx context.Context, p part, w *findings) error {
	if p.from == 0 {
		w.put(0)
		return nil
	}
	const most = 64 << 10 // to read at once: lines are mostly shorter
	buf := scanBuffers.Get().(*[1 << 20]byte)
	defer scanBuffers.Put(buf)
	for at := p.from - 1; at < p.to-1; { // a line may begin right behind one that ends the part before
		end := min(at+most, p.to-1)
		r := s.source.open(ctx, s.files[p.file].path, at, end)
		_, err := io.ReadFull(r, buf[:end-at])
		r.Close()
		if err != nil {
			return err
		}
		if i := bytes.IndexByte(buf[:end-at], '\n'); i >= 0 {
			w.put(uint64(at + int64(i) + 1))
			return nil
		}
		at = end
	}
	return nil
}

// A chunker turns the first lines of parts into chunks.
type chunker struct {
	scan  *scan
	last  *part // in which a line begins; its chunk is not added yet
	begin int64 // of that line
	file  uint32
}

func (c *chunker) merge(p part, found *findings) error {
	begin, any, err := found.next()
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

// fixed makes a record of every n bytes of each file. It reads nothing.
func fixed(n int64) form {
	return form{name: fmt.Sprint("fixed:", n), read: plain, scan: func(ctx context.Context, s *scan) error {
		file, id, rest := -1, uint32(0), int64(0)
		for _, p := range s.parts {
			if p.file != file {
				file, id = p.file, s.addFile(p.file)
				rest += s.files[file].Size % n
			}
			// The records that begin in the part.
			first, end := (p.from+n-1)/n, min((p.to+n-1)/n, s.files[file].Size/n)
			if first >= end {
				continue
			}
			s.b.BeginChunk(p.hosts...)
			if err := s.b.AddStride(id, first*n, n, uint64(end-first)); err != nil {
				return err
			}
			s.done(s.b.Bytes(), s.total)
		}
		if rest > 0 {
			s.b.Note("remainder", fmt.Sprintf("%d bytes at the ends of files are in no record: they do not fill one of %d", rest, n))
		}
		return ctx.Err()
	}}
}

// Bounds of the files that make a chunk together. A small file costs some
// milliseconds, however small it is: a thousand take about as long as 64 MiB, and both a
// fraction of the time that an open may wait.
const (
	chunkBytes = 64 << 20
	chunkFiles = 1000
)

// wholeFiles names the form of files since a chunk has a thousand at most. Before, it
// was "files": an index with other chunks is another version.
const wholeFiles = "files:1000"

// whole makes one record of each file. Small files that follow one another are
// a chunk together; a larger file is a chunk of its own.
func whole(name string) form {
	return form{name: name, read: plain, scan: func(ctx context.Context, s *scan) error {
		for first := 0; first < len(s.files); {
			var blocks []namenode.Block
			n, size := 0, int64(0)
			for _, f := range s.files[first:] {
				if n == chunkFiles || n > 0 && size+f.Size > chunkBytes {
					break
				}
				n, size, blocks = n+1, size+f.Size, append(blocks, f.Blocks.Blocks...)
			}
			s.b.BeginChunk(hostsOfMost(blocks)...)
			for i := first; i < first+n; i++ {
				if err := s.b.Add(index.Extent{File: s.addFile(i), Len: s.files[i].Size}); err != nil {
					return err
				}
			}
			first += n
			s.done(s.b.Bytes(), s.total)
		}
		return ctx.Err()
	}}
}
