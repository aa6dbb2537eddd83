package system_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// A source is something to make a dataset of, and what it should say.
type source struct {
	uri     string
	path    string
	records [][]byte
}

// all is the records from one to another, one after the other.
func (s source) all(from, to int) []byte {
	return bytes.Join(s.records[from:min(to, len(s.records))], nil)
}

// size of a record in sources that are made for their size.
const recordSize = 4096

// words are records of different lengths, each another.
func words(n int) (records [][]byte) {
	for i := range n {
		r := fmt.Appendf(nil, "record %d", i)
		for len(r) < 20+i*7%90 {
			r = append(r, byte('a'+(i+len(r))%26))
		}
		records = append(records, r)
	}
	return records
}

// blocks are records of one length whose every page is another. A gigabyte of them is made in
// a run, and the race detector would look at each byte.
//
//go:norace
func blocks(n, size int) (records [][]byte) {
	for i := range n {
		r := make([]byte, 0, size+7)
		for x := uint64(i)*0x9e3779b97f4a7c15 + 1; len(r) < size; {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			r = binary.LittleEndian.AppendUint64(r, x)
		}
		records = append(records, r[:size:size])
	}
	return records
}

func newLines(t testing.TB, n int) source {
	s := source{path: filepath.Join(t.TempDir(), "lines.txt"), records: words(n)}
	for i := range s.records {
		end := "\n"
		if i%3 == 0 {
			end = "\r\n"
		}
		if i < n-1 { // the last line has none
			s.records[i] = append(s.records[i], end...)
		}
	}
	must(t, os.WriteFile(s.path, s.all(0, n), 0o644))
	s.uri = "file:" + s.path + "?as=lines"
	return s
}

func newFixed(t testing.TB, n, size int) source {
	s := source{path: filepath.Join(t.TempDir(), "fixed.bin"), records: blocks(n, size)}
	rest := []byte("rest")[:min(3, size-1)] // in no record
	must(t, os.WriteFile(s.path, append(s.all(0, n), rest...), 0o644))
	s.uri = fmt.Sprintf("file:%s?as=fixed:%d", s.path, size)
	return s
}

func newTree(t testing.TB, n int) source {
	s := source{path: filepath.Join(t.TempDir(), "tree"), records: words(n)}
	for i, r := range s.records {
		file := filepath.Join(s.path, fmt.Sprintf("%03d/%05d.txt", i/100, i))
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, r, 0o644))
	}
	must(t, os.MkdirAll(s.path, 0o755))
	s.uri = "file:" + s.path + "?as=files"
	return s
}

func newLMDB(t testing.TB, records [][]byte) source {
	s := source{path: filepath.Join(t.TempDir(), "lmdb"), records: records}
	must(t, os.Mkdir(s.path, 0o755))
	put(t, s.path, 0, records)
	s.uri = "lmdb:" + s.path
	return s
}

// put is a writer of an LMDB that puts records from a key on, in one
// transaction.
func put(t testing.TB, path string, key int, records [][]byte) {
	t.Helper()
	env, err := lmdb.NewEnv()
	must(t, err)
	defer env.Close()
	must(t, env.SetMapSize(256<<20))
	must(t, env.Open(path, lmdb.NoSync, 0o644))
	must(t, env.Update(func(txn *lmdb.Txn) error {
		db, err := txn.OpenRoot(0)
		for i := 0; i < len(records) && err == nil; i++ {
			err = txn.Put(db, fmt.Appendf(nil, "%08d", key+i), records[i], 0)
		}
		return err
	}))
}

// every makes one source of each kind with n records.
func every(t testing.TB, n int) map[string]source {
	return map[string]source{
		"lines": newLines(t, n),
		"fixed": newFixed(t, n, 24),
		"files": newTree(t, n),
		"lmdb":  newLMDB(t, words(n)),
	}
}
