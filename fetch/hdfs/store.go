package hdfs

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta"
)

// A store keeps the findings of each split of a source until the index is complete, so
// that an interrupted scan goes on where it stopped. There is one file for each split,
// which gets its name only when it is complete.
type store struct {
	dir string // empty: nothing is kept
}

func newStore(scratch, path, version string) *store {
	if scratch == "" {
		return &store{}
	}
	sum := sha256.Sum256([]byte(path + "\n" + version))
	return &store{filepath.Join(scratch, hex.EncodeToString(sum[:storeName]))}
}

// keepFindings is how long after its last finding a scan may be taken up again.
const keepFindings = 7 * 24 * time.Hour

// sweep removes the stores in a directory to which nothing was added since.
func sweep(scratch string, since time.Time) error {
	if scratch == "" {
		return nil
	}
	entries, err := os.ReadDir(scratch)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, ierr := e.Info()
		name, herr := hex.DecodeString(e.Name())
		if ierr != nil || herr != nil || len(name) != storeName || !e.IsDir() || info.ModTime().After(since) {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(scratch, e.Name())))
	}
	return err
}

// storeName bytes of a hash name a store.
const storeName = 16

// get returns the findings of an earlier scan, or nil.
func (s *store) get(number int) (*findings, error) {
	if s.dir == "" {
		return nil, nil
	}
	f, err := os.Open(s.name(number))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &findings{file: f}
	if !found.sound() { // torn by a crash of the machine: found again
		found.close()
		return nil, nil
	}
	return found, nil
}

func (s *store) name(number int) string { return filepath.Join(s.dir, strconv.Itoa(number)) }

// make has find write findings, and returns them for reading. If check is not nil it
// reads them first, and says why they are not kept.
func (s *store) make(number int, find, check func(f *findings) error) (*findings, error) {
	dir := s.dir
	if dir == "" {
		dir = os.TempDir()
	} else if err := os.MkdirAll(dir, 0700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".part-*.tmp")
	if err != nil {
		return nil, err
	}
	found, err := note(f, math.MaxInt64, find)
	if err == nil && check != nil {
		err = errors.Join(check(found), found.rewind())
	}
	if err == nil && s.dir != "" {
		err = os.Rename(f.Name(), s.name(number))
	} else {
		os.Remove(f.Name())
	}
	if err != nil {
		found.close()
		return nil, err
	}
	return found, nil
}

// remove removes what was kept in case the scan is interrupted.
func (s *store) remove() {
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// Findings are numbers, as many as there are, and a checksum of them. They are
// written by one, then read by one.
type findings struct {
	file *os.File
	out  *bufio.Writer
	in   *bufio.Reader
	sum  *xxhash.Digest
	left int64 // bytes that are not read
}

// note has find write findings to a file, no more than limit bytes of them, and makes
// ready to read them.
func note(f *os.File, limit int64, find func(w *findings) error) (*findings, error) {
	found := &findings{file: f, sum: xxhash.New()}
	found.out = bufio.NewWriterSize(&bounded{io.MultiWriter(f, found.sum), limit}, 1<<16)
	err := find(found)
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

// put writes a number. Its error is told by finish.
func (f *findings) put(v uint64) {
	f.out.Write(binary.AppendUvarint(f.out.AvailableBuffer(), v))
}

func (f *findings) finish() error {
	if err := f.out.Flush(); err != nil {
		return err
	}
	if _, err := f.file.Write(binary.LittleEndian.AppendUint64(nil, f.sum.Sum64())); err != nil {
		return err
	}
	return f.rewind()
}

func (f *findings) rewind() error {
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
func (f *findings) sound() bool {
	if f.rewind() != nil || f.left < 0 {
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
	return f.rewind() == nil
}

// next returns the next number, or false after the last.
func (f *findings) next() (uint64, bool, error) {
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

func (f *findings) close() {
	if f != nil {
		f.file.Close()
	}
}
