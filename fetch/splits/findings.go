package splits

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// Findings are numbers, as many as there are, and a checksum of them. They are
// written by one, then read by one.
type Findings struct {
	file *os.File
	out  *bufio.Writer
	in   *bufio.Reader
	sum  *xxhash.Digest
	left int64 // bytes that are not read
}

// note has look write findings to a file, no more than limit bytes of them, and makes
// ready to read them.
func note(f *os.File, limit int64, look func(w *Findings) error) (*Findings, error) {
	found := &Findings{file: f, sum: xxhash.New()}
	found.out = bufio.NewWriterSize(&bounded{io.MultiWriter(f, found.sum), limit}, 1<<16)
	err := look(found)
	if err == nil {
		err = found.finish()
	}
	return found, err
}

// A bounded writer takes no more than left bytes.
type bounded struct {
	io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errLarge
	}
	return b.Writer.Write(p)
}

var errLarge = meta.Worded(meta.ErrNoSpace, "there is more to find than a node keeps for another")

// Put writes a number. Its error is told by finish.
func (f *Findings) Put(v uint64) {
	f.out.Write(binary.AppendUvarint(f.out.AvailableBuffer(), v))
}

func (f *Findings) finish() error {
	if err := f.out.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Write(binary.LittleEndian.AppendUint64(nil, f.sum.Sum64())); err != nil {
		return err
	}
	return f.Rewind()
}

// Rewind makes ready to read from the first number on.
func (f *Findings) Rewind() error {
	size, err := f.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	_, err = f.file.Seek(0, io.SeekStart)
	f.left = size - 8
	f.in = bufio.NewReaderSize(f.file, 1<<16)
	return err
}

// sound reports whether the checksum fits, and makes ready to read.
func (f *Findings) sound() bool {
	if f.Rewind() != nil || f.left < 0 {
		return false
	}
	sum := xxhash.New()
	if _, err := io.CopyN(sum, f.in, f.left); err != nil {
		return false
	}
	var want [8]byte
	if _, err := io.ReadFull(f.in, want[:]); err != nil || binary.LittleEndian.Uint64(want[:]) != sum.Sum64() {
		return false
	}
	return f.Rewind() == nil
}

// Next returns the next number, or false after the last.
func (f *Findings) Next() (uint64, bool, error) {
	if f.left == 0 {
		return 0, false, nil
	}
	v, err := binary.ReadUvarint(f.in)
	if err != nil {
		return 0, false, fmt.Errorf("list of findings %w: %w", meta.ErrCorrupt, err)
	}
	if f.left -= int64(len(binary.AppendUvarint(nil, v))); f.left < 0 {
		return 0, false, fmt.Errorf("list of findings %w: the last number is not whole", meta.ErrCorrupt)
	}
	return v, true, nil
}

func (f *Findings) close() {
	if f != nil {
		f.file.Close()
	}
}
