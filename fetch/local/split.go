package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"rankfs/fetch/index"
)

const (
	// chunkBytes is the size of a chunk, if no record is longer: large enough that
	// a transfer costs more than its beginning, small enough that a node's
	// memory holds many.
	chunkBytes = 64 << 20

	// scanBuffer is the size of one read and search. It fits the second level of
	// any processor cache, so that the search finds the bytes there.
	scanBuffer = 512 << 10
)

// A form is a way to divide one file into records.
type form struct {
	name  string
	split func(ctx context.Context, f *os.File, size int64, add *adder) error
}

// An adder puts the records of one file into chunks.
type adder struct {
	b       *index.Builder
	file    uint32
	inChunk int64
	done    func(bytes int64)
}

// room begins a new chunk unless n more bytes fit in this one.
func (a *adder) room(n int64) {
	if a.inChunk > 0 && a.inChunk+n > chunkBytes {
		a.b.BeginChunk()
		a.inChunk = 0
	}
	a.inChunk += n
}

func (a *adder) add(off, n int64) error {
	a.room(n)
	return a.b.Add(index.Extent{File: a.file, Off: off, Len: n})
}

// lines makes a record of each line with its terminator. The bytes behind the last
// terminator are a record too, so all records together are the file.
func lines() form {
	return form{"lines", func(ctx context.Context, f *os.File, size int64, add *adder) error {
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL) // a hint
		progress := func(read int64) error {
			add.done(read)
			return ctx.Err()
		}
		return eachLine(f, size, make([]byte, scanBuffer), progress, add.add)
	}}
}

// eachLine calls add with the place of each line among the first size bytes
// of r, and progress before each read. A line may be longer than buf.
func eachLine(r io.ReaderAt, size int64, buf []byte, progress func(read int64) error, add func(off, n int64) error) error {
	var begin, at int64 // of the line; of the bytes not yet searched
	for at < size {
		if err := progress(at); err != nil {
			return err
		}
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		for rest := buf[:n]; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				at += int64(len(rest))
				break
			}
			rest, at = rest[i+1:], at+int64(i)+1
			if err := add(begin, at-begin); err != nil {
				return err
			}
			begin = at
		}
	}
	if begin < size {
		return add(begin, size-begin)
	}
	return nil
}

// fixed makes a record of every n bytes.
func fixed(n int64) form {
	return form{fmt.Sprint("fixed:", n), func(ctx context.Context, f *os.File, size int64, add *adder) error {
		each := max(1, chunkBytes/n)
		for done, total := int64(0), size/n; done < total; done += each {
			if err := ctx.Err(); err != nil {
				return err
			}
			each = min(each, total-done)
			add.room(each * n)
			if err := add.b.AddStride(add.file, done*n, n, uint64(each)); err != nil {
				return err
			}
			add.done((done + each) * n)
		}
		if rest := size % n; rest > 0 {
			add.b.Note("remainder", fmt.Sprintf("the last %d bytes of the file are in no record: they do not fill one of %d", rest, n))
		}
		return nil
	}}
}

// whole makes one record of the file, empty or not.
func whole() form {
	return form{"whole", func(ctx context.Context, f *os.File, size int64, add *adder) error {
		return add.add(0, size)
	}}
}
