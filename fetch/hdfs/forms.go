package hdfs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// formOf returns the form of a name, which is that of a fingerprint too.
func formOf(as string) (form, error) {
	number, isFixed := strings.CutPrefix(as, "fixed:")
	switch {
	case as == "lines":
		return lines(), nil
	case as == "chunks":
		return lineChunks(), nil
	case as == "files" || as == wholeFiles:
		return whole(as), nil
	case as == "sequence":
		return sequences(), nil
	case isFixed:
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > 1<<48-1 {
			return form{}, fmt.Errorf("as=%s %w: use a number of bytes, as fixed:4096", as, meta.ErrInvalid)
		}
		return fixed(n), nil
	}
	return form{}, fmt.Errorf("as=%s %w: use lines, fixed:N, files, sequence or lmdb", as, meta.ErrInvalid)
}

// fixed makes a record of every n bytes of each file. It reads nothing.
func fixed(n int64) form {
	return form{name: fmt.Sprint("fixed:", n), read: plain, scan: func(ctx context.Context, s *scan) error {
		file, id, rest := -1, uint32(0), int64(0)
		for _, p := range s.splits {
			if p.file != file {
				file, id = p.file, s.addFile(p.file)
				rest += s.files[file].Size % n
			}
			// The records that begin in the split.
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
	return form{name: name, read: plain, together: true, scan: func(ctx context.Context, s *scan) error {
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
